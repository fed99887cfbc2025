// What was said and done in one session, item by item, each under its id.
//
// After a connection was lost the whole session is sent again. It is read into a second transcript, and `adopt` then brings
// this one up to date: an item that is there already stays the same object, so that nothing is drawn twice or anew.

import { signal, type Signal, untracked } from "@preact/signals";
import type { CallStatus, ContentBlock, Notice, ToolCallFields, Update } from "../acp";
import { TerminalFeed } from "../terminal_feed";

export type MessageKind = "user" | "agent" | "thought";

let lastLocal = 0;

/** Something said. Its text only grows; whoever draws it is told what was added. */
export class Message {
  readonly is = "message";
  text = "";
  /** What was said other than in text: pictures, files. */
  readonly attachments: ContentBlock[] = [];
  /** Whether more of it may come. */
  readonly isOpen = signal(true);
  readonly version = signal(0);
  private readonly listeners = new Set<(text: string) => void>();

  constructor(
    public id: string,
    readonly kind: MessageKind,
  ) {}

  /** A message that this page sends; Crow gives it an id that is known only when the session is loaded again. */
  static local(kind: MessageKind, content: ContentBlock[]): Message {
    const message = new Message(`local-${++lastLocal}`, kind);
    for (const block of content) message.add(block);
    message.isOpen.value = false;
    return message;
  }

  get isLocal(): boolean {
    return this.id.startsWith("local-");
  }

  add(block: ContentBlock): void {
    if (block.type !== "text") {
      this.attachments.push(block);
      this.version.value++;
      return;
    }
    this.grow(block.text, !this.isLocal || this.isOpen.value);
  }

  private grow(text: string, isOpen: boolean): void {
    if (!this.text) this.version.value++;
    this.text += text;
    this.isOpen.value = isOpen; // before it is drawn: what is complete is drawn as a whole
    for (const listener of this.listeners) listener(text);
  }

  subscribe(listener: (text: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Become what `other` is by growing; false if that cannot be. */
  adopt(other: Message): boolean {
    if (!other.text.startsWith(this.text) || other.attachments.length < this.attachments.length) return false;
    this.id = other.id;
    const rest = other.text.slice(this.text.length);
    if (rest) this.grow(rest, other.isOpen.value);
    for (const block of other.attachments.slice(this.attachments.length)) this.add(block);
    this.isOpen.value = other.isOpen.value;
    return true;
  }
}

/** Crow's own tools of which it knows what they change in files, or that they change nothing. */
const SEEN_THROUGH = new Set(
  "read find search edit write plan ask leave_plan terminal_read terminal_stop web_fetch web_search".split(" "),
);

/** A call of a tool: a card that grows. */
export class Call {
  readonly is = "call";
  readonly fields: Signal<ToolCallFields>;
  /** What its command writes, if it runs one that Crow shows raw. */
  readonly feed = signal<TerminalFeed | null>(null);
  readonly answeredBy = signal<{ by: string; allowed: boolean } | null>(null);
  readonly seconds = signal<number | null>(null);

  constructor(
    readonly id: string,
    /** When it began, in ms; nothing if that was before this page saw it. */
    readonly began: number | null,
  ) {
    this.fields = signal({ toolCallId: id });
  }

  get status(): CallStatus {
    return this.fields.value.status ?? "pending";
  }

  get isSettled(): boolean {
    return this.status === "completed" || this.status === "failed";
  }

  /** Whether it may have changed files without Crow knowing: a command, a subagent or a server's tool that has begun. */
  get mayChangeUnseen(): boolean {
    const hasBegun = this.status === "in_progress" || this.seconds.value !== null;
    return hasBegun && !SEEN_THROUGH.has(this.fields.value.name ?? "");
  }

  change(update: ToolCallFields): void {
    const { _meta: meta, ...fields } = update;
    const news = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
    if (news.length > 1) this.fields.value = { ...this.fields.value, ...Object.fromEntries(news) };
    if (meta?.terminal_output) this.terminal().write(meta.terminal_output.data);
    if (meta?.terminal_exit) {
      this.terminal().end.value = { code: meta.terminal_exit.exit_code, signal: meta.terminal_exit.signal };
      this.terminal().canType.value = false;
    }
    if (meta?.crow?.answeredBy) {
      this.answeredBy.value = { by: meta.crow.answeredBy, allowed: meta.crow.allowed ?? false };
    }
    if (meta?.crow?.seconds !== undefined) this.seconds.value = meta.crow.seconds;
    if (meta?.crow?.input) this.terminal().canType.value = meta.crow.input === "open";
    if (this.isSettled && this.feed.value) this.feed.value.canType.value = false;
  }

  adopt(other: Call): boolean {
    this.fields.value = other.fields.value;
    this.seconds.value = other.seconds.value ?? this.seconds.value;
    this.answeredBy.value = other.answeredBy.value ?? this.answeredBy.value;
    const theirs = other.feed.value;
    if (!theirs) return true; // a load shows the output of an ended command as text; what was seen of it is better
    const ours = this.feed.value;
    if (ours && theirs.text.startsWith(ours.text)) {
      const rest = theirs.text.slice(ours.text.length);
      if (rest) ours.write(rest);
      ours.end.value = theirs.end.value;
      ours.canType.value = theirs.canType.value;
    } else {
      this.feed.value = theirs;
    }
    return true;
  }

  private terminal(): TerminalFeed {
    this.feed.value ??= new TerminalFeed();
    return this.feed.value;
  }
}

/** A sentence of Crow's own. */
export class Remark {
  readonly is = "remark";
  constructor(
    readonly id: string,
    readonly severity: string,
    readonly title: string,
    readonly description: string,
  ) {}

  adopt(other: Remark): boolean {
    return this.title === other.title && this.description === other.description;
  }
}

/** The conversation was summed up. */
export class Compaction {
  readonly is = "compaction";
  readonly state = signal<{ status: string; text: string }>({ status: "in_progress", text: "" });
  constructor(readonly id: string) {}

  adopt(other: Compaction): boolean {
    this.state.value = other.state.value;
    return true;
  }
}

export type Item = Message | Call | Remark | Compaction;

const KINDS = { user_message_chunk: "user", agent_message_chunk: "agent", agent_thought_chunk: "thought" } as const;

export class Transcript {
  items: Item[] = [];
  /** Grows by one when items were added or put elsewhere. */
  readonly version = signal(0);
  /** Grows by one when a call or a turn ended that may have changed a file. */
  readonly revision = signal(0);
  private byId = new Map<string, Item>();
  private remarks = 0;

  /** `isPast`: what is read into it has happened before. */
  constructor(private readonly isPast = false) {}

  apply(update: Update): void {
    switch (update.sessionUpdate) {
      case "user_message_chunk":
      case "agent_message_chunk":
      case "agent_thought_chunk":
        this.said(KINDS[update.sessionUpdate], update.messageId, update.content);
        break;
      case "tool_call":
      case "tool_call_update":
        this.called(update);
        break;
      case "notice":
        this.remark(update);
        break;
      case "compaction_update": {
        const compaction = this.get(update.compactionId, () => new Compaction(update.compactionId));
        const text = (update.summary ?? []).map((block) => (block.type === "text" ? block.text : "")).join("");
        compaction.state.value = { status: update.status, text: update.error ?? text };
      }
    }
  }

  add(item: Item): void {
    this.close();
    this.items.push(item);
    this.byId.set(item.id, item);
    this.version.value++;
  }

  remark({ severity, title, description }: Notice): void {
    this.add(new Remark(`remark-${++this.remarks}`, severity, title, description ?? ""));
  }

  /** The message at the end is complete: nothing of it waits to be drawn, and once it is far away it need not be laid out. */
  close(): void {
    const last = this.items.at(-1);
    if (last?.is === "message") last.isOpen.value = false;
  }

  has(id: string): boolean {
    return this.byId.has(id);
  }

  /** Whether files may have changed of which Crow does not know. Another answer comes with another `revision`. */
  get mayHaveChangedUnseen(): boolean {
    return untracked(() => this.items.some((item) => item.is === "call" && item.mayChangeUnseen));
  }

  /** The texts of the messages that the person has sent. */
  saidByPerson(): string[] {
    return this.items.flatMap((item) => (item.is === "message" && item.kind === "user" ? [item.text] : []));
  }

  /** A message of this page did not reach the model: it was not said. */
  unsaid(message: Message): void {
    this.items = this.items.filter((item) => item !== message);
    this.byId.delete(message.id);
    this.version.value++;
  }

  /** Bring this transcript up to date with one that was read anew. */
  adopt(fresh: Transcript): void {
    const local = this.items.filter((item): item is Message => item.is === "message" && item.isLocal);
    this.items = fresh.items.map((item) => {
      const known =
        this.byId.get(item.id) ??
        (item.is === "message" ? local.find((one) => one.isLocal && one.kind === item.kind && one.text === item.text) : undefined);
      return known && known.is === item.is && known.adopt(item as never) ? known : item;
    });
    this.byId = new Map(this.items.map((item) => [item.id, item]));
    this.remarks = fresh.remarks;
    this.version.value++;
    this.revision.value++;
  }

  private said(kind: MessageKind, messageId: string | undefined, content: ContentBlock): void {
    const last = this.items.at(-1);
    // Without an id a chunk belongs to the message before it, if that is of its kind.
    const id = messageId ?? (last?.is === "message" && last.kind === kind ? last.id : `chunk-${this.items.length}`);
    this.get(id, () => new Message(id, kind)).add(content);
  }

  private called(update: ToolCallFields): void {
    const call = this.get(update.toolCallId, () => new Call(update.toolCallId, this.isPast ? null : Date.now()));
    const wasSettled = call.isSettled;
    call.change(update);
    if (call.isSettled && !wasSettled && call.fields.value.kind !== "read") this.revision.value++;
  }

  private get<T extends Item>(id: string, make: () => T): T {
    let item = this.byId.get(id) as T | undefined;
    if (!item) this.add((item = make()));
    return item;
  }
}
