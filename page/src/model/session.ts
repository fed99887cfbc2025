// One session that this page takes part in: its transcript, what it is doing, what can be chosen, and sending to it.

import { batch, computed, signal } from "@preact/signals";
import type {
  Command,
  ConfigOption,
  ContentBlock,
  OpenedAnswer,
  PlanEntry,
  PromptAnswer,
  SessionId,
  SessionModes,
  StateNotification,
  Update,
} from "../acp";
import { crow } from "../connection";
import { AUTH_REQUIRED, LOST, messageOf, RpcError, UNKNOWN_METHOD } from "../rpc";
import { Outbox, textOf, type Outgoing } from "./outbox";
import { dropLost } from "./questions";
import { callWithModel } from "./setup";
import { Message, Transcript } from "./transcript";

export type Doing = "idle" | "running" | "asks";
/** Milliseconds after a load in which Crow asks again what is still open. */
const ASKED_AGAIN_MS = 1500;

export class Session {
  readonly transcript = new Transcript();
  readonly title = signal("");
  readonly plan = signal<PlanEntry[]>([]);
  readonly usage = signal<{ used: number; size: number; cost?: { amount: number; currency: string } | null } | null>(null);
  readonly commands = signal<Command[]>([]);
  readonly modes = signal<SessionModes | null>(null);
  readonly options = signal<ConfigOption[]>([]);
  readonly doing = signal<Doing>("idle");
  /** Since when it does that, in ms. */
  readonly since = signal(Date.now());
  /** What is being waited for: Crow's own sentence, or nothing. */
  readonly wait = signal<{ text: string; since: number } | null>(null);
  /** In which client the running turn was begun. */
  readonly by = signal("");
  readonly faces = signal<string[]>([]);
  /** How the load goes: what is known from before is shown meanwhile. */
  readonly loading = signal<"no" | "first" | "again">("no");
  readonly problem = signal("");
  readonly needsSetup = signal(false);
  readonly outbox: Outbox;
  readonly isBusy = computed(() => this.doing.value !== "idle");

  /** While a load runs, what comes is read into this one. */
  private fresh: Transcript | null = null;
  private isOpen = false;

  constructor(
    readonly id: SessionId,
    readonly cwd: string,
  ) {
    this.outbox = new Outbox(id);
  }

  /** The session was made by this page: there is nothing to load. */
  opened(answer: OpenedAnswer): void {
    this.isOpen = true;
    this.take(answer);
  }

  /** Join the session on the connection that there is now. */
  async load(): Promise<void> {
    if (this.loading.value !== "no") return;
    this.loading.value = this.isOpen || this.transcript.items.length ? "again" : "first";
    const fresh = (this.fresh = new Transcript());
    try {
      const answer = await callWithModel("session/load", { sessionId: this.id, cwd: this.cwd, mcpServers: [] });
      batch(() => {
        this.transcript.adopt(fresh);
        this.take(answer);
        this.problem.value = "";
        this.needsSetup.value = false;
        this.isOpen = true;
      });
      setTimeout(() => dropLost(this.id), ASKED_AGAIN_MS);
    } catch (error) {
      this.failed(error);
    } finally {
      this.fresh = null;
      this.loading.value = "no";
    }
    if (this.isOpen) this.afterLoad();
  }

  /** The connection is gone; what is shown stays, and is what is known. */
  lost(): void {
    this.wait.value = null;
  }

  apply(update: Update): void {
    switch (update.sessionUpdate) {
      case "plan":
        this.plan.value = update.entries;
        break;
      case "usage_update":
        this.usage.value = update;
        break;
      case "available_commands_update":
        this.commands.value = update.availableCommands;
        break;
      case "current_mode_update":
        if (this.modes.value) this.modes.value = { ...this.modes.value, currentModeId: update.currentModeId };
        break;
      case "config_option_update":
        this.options.value = update.configOptions;
        break;
      case "session_info_update":
        if (update.title) this.title.value = update.title;
        break;
      case "notice":
        if (update._meta?.crow?.isWait) this.wait.value = { text: update.title, since: this.wait.value?.since ?? Date.now() };
        else this.happened(update);
        // A request that failed is tried again after a pause: that is said once, and is what is waited for until then.
        if (update._meta?.crow?.retryIn && !this.fresh) this.wait.value = { text: update.title, since: Date.now() };
        break;
      default:
        this.happened(update);
    }
  }

  private happened(update: Update): void {
    if (!this.fresh) this.wait.value = null;
    (this.fresh ?? this.transcript).apply(update);
  }

  changed(news: StateNotification): void {
    this.setDoing(news.state, news.by);
    if (news.faces) this.faces.value = news.faces;
    if (news.ended) this.turnEnded(news.ended.error);
  }

  /** Say something: into the turn that runs, or as the beginning of one. Without a connection it waits for one. */
  send(content: ContentBlock[]): void {
    this.outbox.put({ content });
    void this.flush();
  }

  cancel(): void {
    crow.notify("session/cancel", { sessionId: this.id });
  }

  async setMode(modeId: string): Promise<void> {
    await this.attempt(crow.call("session/set_mode", { sessionId: this.id, modeId }));
    if (this.modes.value) this.modes.value = { ...this.modes.value, currentModeId: modeId };
  }

  async setOption(configId: string, value: string): Promise<void> {
    const answer = await this.attempt(crow.call("session/set_config_option", { sessionId: this.id, configId, value }));
    if (answer) this.options.value = answer.configOptions;
  }

  /** Send what waits, if it can be sent. */
  async flush(): Promise<void> {
    if (!crow.isUsable || !this.isOpen || this.fresh) return;
    const message = this.outbox.waiting.value.find((one) => one.after === undefined);
    if (!message) return;
    message.after = this.transcript.saidByPerson().length;
    const shown = Message.local("user", message.content);
    this.transcript.add(shown);
    if (this.isBusy.value && (await this.steered(message))) return void this.flush();
    await this.prompted(message);
  }

  private async steered(message: Outgoing): Promise<boolean> {
    try {
      const answer = await crow.call("_session/steering", { sessionId: this.id, prompt: message.content });
      if (answer.outcome !== "injected") return false;
      this.outbox.remove(message);
      return true;
    } catch (error) {
      if (!(error instanceof RpcError) || error.code === LOST || error.code === UNKNOWN_METHOD) return false;
      this.outbox.remove(message);
      this.failed(error);
      return true;
    }
  }

  private async prompted(message: Outgoing): Promise<void> {
    this.problem.value = "";
    this.setDoing("running", "");
    try {
      const answer = await callWithModel("session/prompt", { sessionId: this.id, prompt: message.content });
      this.outbox.remove(message);
      this.answered(answer);
    } catch (error) {
      if (error instanceof RpcError && error.code === LOST) return; // settled by the next load
      this.outbox.remove(message);
      this.failed(error);
      this.turnEnded();
    }
    void this.flush();
  }

  private answered({ stopReason, _meta: meta }: PromptAnswer): void {
    this.turnEnded();
    const stopped: Record<string, string> = {
      max_tokens: "The model's reply was cut: it was too long.",
      max_turn_requests: "The turn took too many steps and was ended.",
      refusal: "The model refused to go on.",
    };
    const sentence = stopped[stopReason];
    if (sentence) this.transcript.remark({ severity: "warning", title: sentence });
    const left = meta?.steering?.leftOver ?? [];
    if (left.length && !this.outbox.waiting.value.length) this.leftOver.value = left.map((one) => one.text).join("\n\n");
  }

  /** What was said into a turn that ended before the model got it: the composer offers it again. */
  readonly leftOver = signal("");

  private turnEnded(error?: string): void {
    this.wait.value = null;
    this.setDoing("idle", "");
    this.transcript.revision.value++;
    if (error) this.problem.value = error;
  }

  private setDoing(doing: Doing, by: string | undefined): void {
    if (by) this.by.value = by;
    // Whoever joins in the moment in which a turn ends is told that nothing runs, and not that something ended.
    if (doing === "idle") this.transcript.close();
    if (this.doing.value === doing) return;
    this.doing.value = doing;
    this.since.value = Date.now();
  }

  private take(answer: OpenedAnswer): void {
    if (answer.modes) this.modes.value = answer.modes;
    if (answer.configOptions) this.options.value = answer.configOptions;
  }

  private afterLoad(): void {
    if (!this.isBusy.value) this.transcript.close(); // else its last character would be waited for
    const kept = this.outbox.settle(this.transcript.saidByPerson());
    for (const one of kept) {
      const title = `The connection was lost while this was sent, and it may have been done: ${textOf(one.content)}`;
      this.transcript.remark({ severity: "warning", title });
    }
    void this.flush();
  }

  private async attempt<T>(request: Promise<T>): Promise<T | undefined> {
    try {
      return await request;
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  private failed(error: unknown): void {
    if (error instanceof RpcError && error.code === LOST) return;
    if (error instanceof RpcError && error.code === AUTH_REQUIRED) this.needsSetup.value = true;
    this.problem.value = messageOf(error);
  }
}
