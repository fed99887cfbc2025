// Messages of one session that have not reached Crow for certain. They outlive the connection and the page.
//
// The browser keeps them for all of its tabs together, so each has an id, and a tab that is about to send one first writes
// down that it does: another tab, or this one after a reload, must not send it a second time.

import { signal } from "@preact/signals";
import type { ContentBlock, SessionId } from "../acp";
import { recall, remember } from "../storage";

export interface Outgoing {
  id: string;
  content: ContentBlock[];
  /** How many messages of the person the session had when this one was sent; nothing before it was. */
  after?: number;
  /** It was said into a running turn. */
  isSteered?: boolean;
  /** The person has said once more that it is to be sent. */
  isConfirmed?: boolean;
}

/** What waited for longer is asked about before it is sent: who wrote it may have forgotten it, or done it otherwise. */
const LONGEST_WAIT_MS = 60 * 60 * 1000;

/** When it was written, in ms: its id says so. */
export const writtenAt = ({ id }: Outgoing): number => Number.parseInt(id, 10) || 0;

export const isTooOld = (message: Outgoing): boolean => !message.isConfirmed && Date.now() - writtenAt(message) > LONGEST_WAIT_MS;

export const textOf = (content: ContentBlock[]): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

/** Half a character is stored as another one, and what arrived would not be known again. */
function wellFormed(block: ContentBlock): ContentBlock {
  return block.type === "text" ? { ...block, text: block.text.toWellFormed() } : block;
}

const keyOf = (id: SessionId): string => `outbox.${id}`;

/** The session is deleted: nothing is sent to it any more. */
export function forgetOutbox(id: SessionId): void {
  remember(keyOf(id), null);
}

export class Outbox {
  readonly waiting;
  /** Those that the browser has no room for: only this tab knows them. */
  private readonly unkept = new Set<string>();
  private readonly key: string;

  constructor(sessionId: SessionId) {
    this.key = keyOf(sessionId);
    this.waiting = signal<Outgoing[]>(this.kept());
  }

  put(content: ContentBlock[]): void {
    const message = { id: `${Date.now()}.${Math.random()}`, content: content.map(wellFormed) };
    this.waiting.value = [...this.waiting.value, message];
    if (!remember(this.key, [...this.kept(), message])) this.unkept.add(message.id);
  }

  /** Write down that this message is being sent; false if another tab does, or did, and it is none of ours any more. */
  claim(message: Outgoing, after: number, isSteered: boolean): boolean {
    const kept = this.kept();
    const isOurs = this.unkept.has(message.id) || kept.some((one) => one.id === message.id && one.after === undefined);
    if (!isOurs) {
      this.waiting.value = this.waiting.value.filter((one) => one.id !== message.id);
      return false;
    }
    this.mark(message, { after, isSteered });
    return true;
  }

  /** The running turn does not take it: it is to begin one. */
  begins(message: Outgoing): void {
    this.mark(message, { isSteered: false });
  }

  /** It is to be sent, although it is old. */
  confirm(message: Outgoing): void {
    this.mark(message, { isConfirmed: true });
  }

  private mark(message: Outgoing, news: Partial<Outgoing>): void {
    const mark = (one: Outgoing) => (one.id === message.id ? { ...one, ...news } : one);
    this.waiting.value = this.waiting.value.map(mark);
    this.keep(this.kept().map(mark));
  }

  remove(message: Outgoing): void {
    this.waiting.value = this.waiting.value.filter((one) => one.id !== message.id);
    this.keep(this.kept().filter((one) => one.id !== message.id));
  }

  /**
   * Sort out what was being sent when the connection was lost, by what the session says now: what arrived is done.
   * Returns what must not be sent again by itself, as twice is too often: a command that was carried out may not be shown, and
   * what was said into a turn is shown only once the model gets it.
   */
  settle(said: string[]): Outgoing[] {
    const unsure = this.waiting.value.filter((one) => one.after !== undefined);
    const arrived = unsure.filter((one) => said.slice(one.after).includes(textOf(one.content)));
    const unknown = unsure.filter((one) => !arrived.includes(one) && (one.isSteered || textOf(one.content).startsWith("/")));
    const left = new Set([...arrived, ...unknown].map((one) => one.id));
    const again = new Set(unsure.map((one) => one.id));
    const sort = (all: Outgoing[]) =>
      all
        .filter((one) => !left.has(one.id))
        .map((one) => (again.has(one.id) ? { id: one.id, content: one.content } : one));
    this.waiting.value = sort(this.waiting.value);
    this.keep(sort(this.kept()));
    return unknown;
  }

  private kept(): Outgoing[] {
    return recall<Outgoing[]>(this.key, []).filter((one) => typeof one.id === "string");
  }

  private keep(messages: Outgoing[]): void {
    remember(this.key, messages.length ? messages : null);
  }
}
