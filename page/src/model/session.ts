// One session that this page takes part in: its transcript, what it is doing, what can be chosen, and sending to it.

import { batch, computed, signal } from "@preact/signals";
import type {
  Command,
  ConfigChoice,
  ConfigOption,
  ContentBlock,
  InboxRow,
  LeftOver,
  OpenedAnswer,
  PlanEntry,
  PromptAnswer,
  PromptErrorData,
  SessionId,
  SessionModes,
  StateNotification,
  Update,
} from "../acp";
import { crow } from "../connection";
import { AUTH_REQUIRED, isNotTaken, LOST, messageOf, RpcError, UNKNOWN_METHOD } from "../rpc";
import { draftOf, giveBack } from "./composing";
import { isTooOld, Outbox, textOf, type Outgoing } from "./outbox";
import { dropLost, questionsOf } from "./questions";
import { callWithModel } from "./setup";
import { Message, Transcript } from "./transcript";

export type Doing = "idle" | "running" | "asks";
/** Something that can be chosen for a session, such as its mode or its model. */
export interface Choice {
  id: string;
  isMode: boolean;
  name: string;
  value: string;
  choices: ConfigChoice[];
  choose(value: string): Promise<void>;
}
/** A message as the page shows it, and what it was made of. */
interface Sent {
  shown: Message;
  content: ContentBlock[];
}
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
  /** It cannot be opened, for the reason that `problem` says: its folder may be gone. */
  readonly isShut = signal(false);
  readonly outbox: Outbox;
  readonly isBusy = computed(() => this.doing.value !== "idle");
  /** What can be chosen. Where one of the options is the mode, the modes are not offered a second time. */
  readonly choices = computed<Choice[]>(() => {
    const modes = this.modes.value;
    const options = this.options.value.map(({ id, category, name, currentValue, options }) => ({
      id,
      isMode: category === "mode" || id === "mode",
      name,
      value: currentValue,
      choices: options,
      choose: (value: string) => this.setOption(id, value),
    }));
    if (!modes || options.some((option) => option.isMode)) return options;
    const choices = modes.availableModes.map((mode) => ({ name: mode.name, value: mode.id }));
    return [{ id: "mode", isMode: true, name: "Mode", value: modes.currentModeId, choices, choose: (value) => this.setMode(value) }, ...options];
  });

  /** While a load runs, what comes is read into this one. */
  private fresh: Transcript | null = null;
  private freshPlan: PlanEntry[] = [];
  private isOpen = false;
  /** Whether the turn that runs was begun by this page. */
  private hasOwnTurn = false;
  /** What Crow itself last said that the session does, and where that was begun. */
  private told: { doing: Doing; by: string } = { doing: "idle", by: "" };
  /** What this page has said into the turn that runs, by the id that Crow gave it, which begins with the turn's. */
  private readonly injected = new Map<string, Sent>();
  /** Of that, what the model did not get, until the turn has ended. */
  private readonly leftOver: Sent[] = [];

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
    const fresh = (this.fresh = new Transcript(true));
    this.freshPlan = [];
    this.isOpen = false;
    try {
      const answer = await callWithModel("session/load", { sessionId: this.id, cwd: this.cwd, mcpServers: [] });
      batch(() => {
        this.transcript.adopt(fresh);
        this.keepInjected();
        this.plan.value = this.freshPlan; // none, if it was cleared meanwhile
        this.take(answer);
        this.problem.value = "";
        this.needsSetup.value = false;
        this.isShut.value = false;
        this.isOpen = true;
        this.fresh = null;
      });
      setTimeout(() => dropLost(this.id), ASKED_AGAIN_MS);
      this.afterLoad();
    } catch (error) {
      this.failed(error);
      this.isShut.value = !(error instanceof RpcError && error.code === LOST);
    } finally {
      this.fresh = null;
      this.loading.value = "no";
    }
  }

  /** The process that ran it has ended: what was missed is shown, and why. */
  async loadAgain(reason: string): Promise<void> {
    await this.load();
    if (reason) this.transcript.remark({ severity: "warning", title: reason });
  }

  /** Whether this page has something to do with the session also while nobody looks at it. */
  get isNeeded(): boolean {
    return this.hasOwnTurn || this.doing.value === "asks" || this.outbox.waiting.value.length > 0 || questionsOf(this.id).length > 0;
  }

  /** The connection is gone; what is shown stays, and is what is known. */
  lost(): void {
    this.wait.value = null;
  }

  apply(update: Update): void {
    switch (update.sessionUpdate) {
      case "plan":
        if (this.fresh) this.freshPlan = update.entries;
        else this.plan.value = update.entries;
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
        if (!this.fresh) this.offerAgain(update._meta?.steering?.leftOver);
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

  /** What the list says of the session before it is joined: a turn that runs is not taken for none meanwhile. */
  listedAs(row: InboxRow): void {
    if (row.state !== "running" && row.state !== "asks") return;
    this.told = { doing: row.state, by: row.by ?? "" };
    this.setDoing(row.state, row.by);
    this.listedSince(row);
  }

  /** The list knows since when the session does what it does, also from before this page looked. */
  listedSince({ state, since }: InboxRow): void {
    const then = Date.parse(since ?? "");
    if (state === this.doing.value && then) this.since.value = Math.min(then, Date.now());
  }

  changed(news: StateNotification): void {
    this.told = { doing: news.state, by: news.by ?? "" };
    batch(() => {
      if (news.ended) {
        this.turnEnded(news.ended.error);
        this.injectedInto(news.ended.turn).forEach(([id]) => this.injected.delete(id)); // what is left over was told before
      }
      if (news.state === "idle") this.hasOwnTurn = false; // it may have ended while there was no connection
      this.setDoing(news.state, news.by);
      if (!this.fresh && (news.turn || news.state === "idle")) this.offerMissed(news.turn);
      if (news.faces) this.faces.value = news.faces;
    });
  }

  /** Say something: into the turn that runs, or as the beginning of one. Without a connection it waits for one. */
  send(content: ContentBlock[]): void {
    this.outbox.put(content);
    void this.flush();
  }

  cancel(): void {
    crow.notify("session/cancel", { sessionId: this.id });
  }

  async setMode(modeId: string): Promise<void> {
    this.needsConnection();
    const answer = await this.attempt(crow.call("session/set_mode", { sessionId: this.id, modeId }));
    // Also if it was not done: then what was chosen in the page is put back to what is true.
    if (this.modes.value) this.modes.value = { ...this.modes.value, ...(answer ? { currentModeId: modeId } : {}) };
  }

  async setOption(configId: string, value: string): Promise<void> {
    this.needsConnection();
    const answer = await this.attempt(crow.call("session/set_config_option", { sessionId: this.id, configId, value }));
    this.options.value = answer?.configOptions ?? [...this.options.value];
  }

  /** What is chosen without a connection is put back at once, and that is said. */
  private needsConnection(): void {
    if (!crow.isUsable) this.problem.value = "There is no connection to Crow: nothing was changed.";
  }

  /** Send what waits, if it can be sent. */
  async flush(): Promise<void> {
    if (!crow.isUsable || !this.isOpen || this.fresh) return;
    const message = this.outbox.waiting.value.find((one) => one.after === undefined && !isTooOld(one));
    if (!message) return;
    if (!this.outbox.claim(message, this.transcript.saidByPerson().length, this.isBusy.value)) return void this.flush();
    const sent: Sent = { shown: Message.local("user", message.content), content: message.content };
    this.transcript.add(sent.shown);
    if (this.isBusy.value && (await this.steered(message, sent))) return void this.flush();
    await this.prompted(message, sent);
  }

  private async steered(message: Outgoing, sent: Sent): Promise<boolean> {
    try {
      const answer = await crow.call("_session/steering", { sessionId: this.id, prompt: message.content });
      if (answer.outcome !== "injected") return false;
      this.outbox.remove(message);
      const id = answer._meta?.steering?.messageId;
      if (id) this.injected.set(id, sent);
      return true;
    } catch (error) {
      if (error instanceof RpcError && error.code === LOST) return true; // settled by the next load
      if (!(error instanceof RpcError) || error.code === UNKNOWN_METHOD) return false;
      this.outbox.remove(message);
      this.failed(error);
      this.takeBack(sent);
      return true;
    }
  }

  private async prompted(message: Outgoing, sent: Sent): Promise<void> {
    this.outbox.begins(message);
    this.problem.value = "";
    this.setDoing("running", "");
    this.hasOwnTurn = true;
    try {
      const answer = await crow.call("session/prompt", { sessionId: this.id, prompt: message.content });
      this.outbox.remove(message);
      this.answered(answer);
    } catch (error) {
      if (error instanceof RpcError && error.code === LOST) return; // settled by the next load
      this.outbox.remove(message);
      this.failed(error);
      if (isNotTaken(error)) this.notBegun(sent);
      else {
        this.offerAgain(leftOverIn(error));
        this.turnEnded();
      }
    }
    void this.flush();
  }

  /** No turn was begun: another one may run, or none, which Crow has said. */
  private notBegun(sent: Sent): void {
    this.hasOwnTurn = false;
    this.takeBack(sent);
    this.setDoing(this.told.doing, this.told.by);
  }

  private answered({ stopReason, _meta: meta }: PromptAnswer): void {
    this.offerAgain(meta?.steering?.leftOver);
    this.turnEnded();
    const stopped: Record<string, string> = {
      max_tokens: "The model's reply was cut: it was too long.",
      max_turn_requests: "The turn took too many steps and was ended.",
      refusal: "The model refused to go on.",
    };
    const sentence = stopped[stopReason];
    const last = this.transcript.items.at(-1);
    const isTold = last?.is === "remark" && last.severity !== "info"; // by Crow, which knows more of it
    if (sentence && !isTold) this.transcript.remark({ severity: "warning", title: sentence });
  }

  private turnEnded(error?: string): void {
    this.wait.value = null;
    this.hasOwnTurn = false;
    this.setDoing("idle", "");
    this.takeBack(...this.leftOver.splice(0));
    if (error) this.problem.value = error;
  }

  private setDoing(doing: Doing, by: string | undefined): void {
    if (by) this.by.value = by;
    // Whoever joins in the moment in which a turn ends is told that nothing runs, and not that something ended.
    if (doing === "idle") this.transcript.close();
    if (this.doing.value === doing) return;
    if (doing === "idle") this.transcript.revision.value++;
    this.doing.value = doing;
    this.since.value = Date.now();
  }

  private take(answer: OpenedAnswer): void {
    if (answer.modes) this.modes.value = answer.modes;
    if (answer.configOptions) this.options.value = answer.configOptions;
  }

  /** What this page said into a turn that ended before the model got it. Others' words are for who said them. */
  private offerAgain(left: LeftOver[] = []): void {
    for (const { messageId } of left) {
      const sent = this.injected.get(messageId);
      if (sent) this.leftOver.push(sent);
      this.injected.delete(messageId); // it is told twice to who began the turn
    }
    if (!this.isBusy.value) this.takeBack(...this.leftOver.splice(0));
  }

  private injectedInto(turn: string): [string, Sent][] {
    return [...this.injected].filter(([id]) => id.startsWith(`${turn}-`));
  }

  /** After a load: what the model has got is in the transcript. Other messages wait, and are shown again. */
  private keepInjected(): void {
    for (const [id, { shown }] of [...this.injected]) {
      if (this.transcript.has(id)) this.injected.delete(id);
      else this.transcript.add(shown);
    }
  }

  /** Whatever was said into another turn than the one that runs: that one ended while there was no connection. */
  private offerMissed(running: string | undefined): void {
    const waiting = new Set(running ? this.injectedInto(running).map(([id]) => id) : []);
    this.offerAgain([...this.injected.keys()].filter((id) => !waiting.has(id)).map((messageId) => ({ messageId, text: "" })));
  }

  /** What was not taken was not said: the composer has it again. */
  private takeBack(...sent: Sent[]): void {
    for (const { shown } of sent) this.transcript.unsaid(shown);
    giveBack(draftOf(this.id), sent.map(({ content }) => content));
  }

  private afterLoad(): void {
    if (!this.isBusy.value) this.transcript.close(); // it was read as if more could come
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

/** What a turn that failed did not take in. */
function leftOverIn(error: unknown): LeftOver[] | undefined {
  return error instanceof RpcError ? (error.data as PromptErrorData | null | undefined)?.steering?.leftOver : undefined;
}
