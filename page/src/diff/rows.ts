// Makes the rows of a diff: numbers, code, and the words in which a changed line differs from its partner.

import type { Token } from "../highlight/highlight";
import { type Item, lineEnds, type Row, rowAt, type Side, type Slice } from "./model";
import { body, type Marks, paint } from "./paint";
import { differingWords, type Span } from "./words";

/** Characters from which a line is cut. */
const LONG_LINE = 4000;

export class RowMaker {
  private readonly words = new Map<string, [Span[], Span[]] | null>();
  /** Of each item, whether carriage returns are shown. */
  private readonly showsReturns: boolean[];

  constructor(
    items: readonly Item[],
    private readonly beside: boolean,
  ) {
    this.showsReturns = items.map((item) => lineEnds(item) === "mixed");
  }

  /** The rows of a slice, and a note where a file ends without a line feed. */
  rowsOf(piece: Slice, item: Item): HTMLElement[] {
    const rows: HTMLElement[] = [];
    for (let index = 0; index < piece.count; index += 1) {
      const row = rowAt(piece.part, piece.at + index, this.beside);
      const line = this.beside ? this.inTwoColumns(piece, item, row) : this.inOneColumn(piece, item, row);
      if (!piece.part.same && piece.at + index === 0) line.dataset.change = String(piece.change);
      rows.push(line);
      if (endsFile(item, row)) rows.push(note("No newline at end of file", "gap"));
    }
    return rows;
  }

  private inOneColumn(piece: Slice, item: Item, row: Row): HTMLElement {
    const line = document.createElement("div");
    line.className = `l ${row.kind}`;
    line.tabIndex = -1;
    line.append(
      number(row.old < 0 ? "" : String(item.oldLine + row.old)),
      number(row.new < 0 ? "" : String(item.newLine + row.new)),
      this.code(piece, item, row.kind === "del" ? "old" : "new", row.kind === "del" ? row.old : row.new),
    );
    return line;
  }

  private inTwoColumns(piece: Slice, item: Item, row: Row): HTMLElement {
    const line = document.createElement("div");
    const isSame = row.kind === "same";
    line.className = `l ${isSame ? "same" : "pair"}`;
    line.tabIndex = -1;
    for (const side of ["old", "new"] as const) {
      const at = row[side];
      const mark = isSame ? "same" : at < 0 ? "none" : side === "old" ? "del" : "add";
      const gutter = number(at < 0 ? "" : String((side === "old" ? item.oldLine : item.newLine) + at));
      gutter.className = mark;
      const code = at < 0 ? document.createElement("code") : this.code(piece, item, side, at);
      code.classList.add(mark);
      line.append(gutter, code);
    }
    return line;
  }

  private code(piece: Slice, item: Item, side: Side, at: number): HTMLElement {
    const code = document.createElement("code");
    code.dataset.side = side;
    code.dataset.at = String(at);
    this.fill(code, piece, item, side, at, undefined);
    return code;
  }

  /** Fills the code of one line, with the colours of its language once they are known. */
  fill(code: HTMLElement, piece: Slice, item: Item, side: Side, at: number, tokens: Token[] | undefined): void {
    const line = item[side][at] ?? "";
    const changed = !piece.part.same;
    const marks: Marks = {
      tokens,
      words: changed ? this.marked(piece, item, side, at) : undefined,
      trailing: changed && side === "new",
      returns: changed && (this.showsReturns[piece.item] ?? false),
    };
    if (line.length <= LONG_LINE || code.dataset.whole) {
      paint(code, line, marks);
      return;
    }
    paint(code, line.slice(0, LONG_LINE / 2), {});
    const button = document.createElement("button");
    button.type = "button";
    button.className = "rest";
    button.textContent = `${(line.length - LONG_LINE / 2).toLocaleString("en")} more characters`;
    button.onclick = () => {
      code.dataset.whole = "1";
      this.fill(code, piece, item, side, at, tokens);
    };
    code.append(button);
  }

  /** The words of a changed line that its partner on the other side does not have. */
  private marked(piece: Slice, item: Item, side: Side, at: number): Span[] | undefined {
    const { part } = piece;
    const index = at - (side === "old" ? part.oldAt : part.newAt);
    if (index >= Math.min(part.oldCount, part.newCount)) return undefined;
    const key = `${piece.item}:${part.oldAt + index}`;
    let found = this.words.get(key);
    if (found === undefined) {
      found = differingWords(body(item.old[part.oldAt + index] ?? ""), body(item.new[part.newAt + index] ?? ""));
      this.words.set(key, found);
    }
    return found?.[side === "old" ? 0 : 1];
  }
}

function number(text: string): HTMLElement {
  const element = document.createElement("i");
  if (text) element.dataset.n = text;
  return element;
}

export function note(text: string, kind = "quiet"): HTMLElement {
  const element = document.createElement("div");
  element.className = `note ${kind}`;
  element.textContent = text;
  return element;
}

/** Whether a row is the last line of a file that ends without a line feed. */
function endsFile(item: Item, row: Row): boolean {
  const ends = (side: Side) => row[side] >= 0 && row[side] === item[side].length - 1 && !item[side][row[side]]?.endsWith("\n");
  return ends("old") || ends("new");
}
