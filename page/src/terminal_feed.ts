// What a command has written so far, and what it writes: the transcript fills it, a terminal draws it.

import { signal } from "@preact/signals";

export interface CommandEnd {
  code: number | null;
  signal: string | null;
}

/** Characters that are kept here. Crow has the whole output (`_crow/output`). */
const MOST = 2 * 1024 * 1024;

export class TerminalFeed {
  readonly end = signal<CommandEnd | null>(null);
  /** Whether the person may type into the command. */
  readonly canType = signal(false);
  private parts: string[] = [];
  private length = 0;
  private cut = false;
  private readonly listeners = new Set<(data: string) => void>();

  get text(): string {
    return this.parts.join("");
  }

  get isEmpty(): boolean {
    return this.length === 0;
  }

  /** Whether the beginning is no longer kept here. */
  get isCut(): boolean {
    return this.cut;
  }

  write(data: string): void {
    this.parts.push(data);
    this.length += data.length;
    while (this.length > MOST && this.parts.length > 1) {
      this.length -= this.parts.shift()?.length ?? 0;
      this.cut = true;
    }
    for (const listener of this.listeners) listener(data);
  }

  /** Hands over all that is written from now on; `text` is what was written before. */
  subscribe(listener: (data: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
