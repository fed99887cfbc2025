// Messages of one session that have not reached Crow for certain. They outlive the connection and the page.

import { signal } from "@preact/signals";
import type { ContentBlock, SessionId } from "../acp";
import { recall, remember } from "../storage";

export interface Outgoing {
  content: ContentBlock[];
  /** How many messages of the person the session had when this one was sent; nothing before it was. */
  after?: number;
}

export const textOf = (content: ContentBlock[]): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

export class Outbox {
  readonly waiting;

  constructor(private readonly sessionId: SessionId) {
    this.waiting = signal<Outgoing[]>(recall(`outbox.${sessionId}`, []));
  }

  put(message: Outgoing): void {
    this.set([...this.waiting.value, message]);
  }

  remove(message: Outgoing): void {
    this.set(this.waiting.value.filter((one) => one !== message));
  }

  /**
   * Sort out what was being sent when the connection was lost, by what the session says now: what arrived is done.
   * Returns what must not be sent again by itself: a command that was carried out may not be shown, and twice is too often.
   */
  settle(said: string[]): Outgoing[] {
    const unsure = this.waiting.value.filter((one) => one.after !== undefined);
    const arrived = unsure.filter((one) => said.slice(one.after).includes(textOf(one.content)));
    const commands = unsure.filter((one) => !arrived.includes(one) && textOf(one.content).startsWith("/"));
    this.set(
      this.waiting.value
        .filter((one) => !arrived.includes(one) && !commands.includes(one))
        .map(({ content }) => ({ content })),
    );
    return commands;
  }

  private set(messages: Outgoing[]): void {
    this.waiting.value = messages;
    remember(`outbox.${this.sessionId}`, messages.length ? messages : null);
  }
}
