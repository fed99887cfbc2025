// Colours the code of a diff as its language has it: after the rows are drawn, when there is nothing else to do.

import { fetched } from "../fetched";
import type { Token } from "../highlight/highlight";
import { whenIdle } from "../near";
import type { Item, Side, Slice } from "./model";
import type { RowMaker } from "./rows";

/** Characters that are highlighted as a whole; above that, slice by slice. */
const WHOLE_TEXT = 50_000;

export class Colours {
  private readonly tokens = new Map<string, Promise<Token[][] | null>>();
  private isGone = false;

  constructor(private readonly rows: RowMaker) {}

  /** Colours the rows of a slice once there is nothing else to do. */
  colour(element: HTMLElement, piece: Slice, item: Item): void {
    whenIdle(() => {
      if (!this.isGone && element.isConnected) void this.fillIn(element, piece, item);
    });
  }

  /** Nothing is coloured any more. */
  end(): void {
    this.isGone = true;
  }

  private async fillIn(element: HTMLElement, piece: Slice, item: Item): Promise<void> {
    const codes = [...element.querySelectorAll<HTMLElement>("code[data-at]")];
    for (const side of ["old", "new"] as const) {
      const mine = codes.filter((code) => code.dataset.side === side);
      const first = Number(mine[0]?.dataset.at);
      const last = Number(mine[mine.length - 1]?.dataset.at);
      if (!mine.length) continue;
      const { from, lines } = await this.tokensOf(piece.item, item, side, first, last);
      if (!lines || this.isGone) continue;
      for (const code of mine) {
        const at = Number(code.dataset.at);
        const tokens = lines[at - from];
        if (tokens?.length) this.rows.fill(code, piece, item, side, at, tokens);
      }
    }
  }

  private async tokensOf(
    index: number,
    item: Item,
    side: Side,
    first: number,
    last: number,
  ): Promise<{ from: number; lines: Token[][] | null }> {
    const all = item[side];
    const isSmall = all.length < 2000 && all.reduce((sum, line) => sum + line.length, 0) <= WHOLE_TEXT;
    const from = isSmall ? 0 : first;
    const key = `${index}:${side}:${from}:${isSmall ? 0 : last}`;
    let lines = this.tokens.get(key);
    if (!lines) {
      const text = (isSmall ? all : all.slice(first, last + 1)).join("");
      lines = fetched(() => import("../highlight/highlight")).then(({ tokensOfLines, languageOf }) =>
        tokensOfLines(text, languageOf(item.path)),
      );
      this.tokens.set(key, lines);
    }
    return { from, lines: await lines };
  }
}
