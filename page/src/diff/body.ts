// Draws the lines of one file's diff, by itself and not with Preact: rows are made in slices, when they come near to what
// is seen, so that a diff of any length opens at once.

import { fetched } from "../fetched";
import type { Token } from "../highlight/highlight";
import { whenIdle, whenNear } from "../near";
import { openComment } from "./comment";
import { type Item, type Piece, type Row, piecesOf, rowAt, slices, withoutBlanks } from "./model";
import { body, type Marks, paint } from "./paint";
import { differingWords, type Span } from "./words";

export interface BodyOptions {
  beside: boolean;
  /** Whether changes of blanks alone are left out. */
  blanks: boolean;
  /** Whether all is drawn, however long it is. */
  whole: boolean;
  /** Changes over all items; given where single ones can be chosen. */
  choices?: { total: number; toggle: (change: number) => void } | undefined;
  comment?: ((line: number, text: string, quoted: string) => void) | undefined;
  /** Called when the person wants to see all of it. */
  onWhole: () => void;
}

type Rows = Extract<Piece, { kind: "rows" }>;
type Side = "old" | "new";

/** Rows above which a diff is folded, and how many are shown then. */
const LARGE = 400;
const FIRST = 100;
const LONG_LINE = 4000;
/** Characters that are highlighted as a whole; above that, slice by slice. */
const WHOLE_TEXT = 50_000;

export class DiffBody {
  private accepted: ReadonlySet<number> | undefined;
  private readonly off = new Set<() => void>();
  private readonly pieces = new Map<HTMLElement, Rows>();
  private readonly words = new Map<string, [Span[], Span[]] | null>();
  private readonly tokens = new Map<string, Promise<Token[][] | null>>();
  private readonly returns: boolean[];
  private isGone = false;

  constructor(
    private readonly host: HTMLElement,
    private readonly items: readonly Item[],
    private readonly options: BodyOptions,
  ) {
    this.returns = items.map((item) => lineEnds(item) === "mixed");
    this.draw();
  }

  /** Ends all that waits, so that nothing is drawn any more. */
  end(): void {
    this.isGone = true;
    for (const off of this.off) off();
    this.off.clear();
  }

  /** Shows which changes are accepted. */
  accept(accepted: ReadonlySet<number>): void {
    this.accepted = accepted;
    for (const [element, piece] of this.pieces) this.mark(element, piece);
  }

  private draw(): void {
    const { beside, blanks, whole } = this.options;
    const pieces = this.items.flatMap((item, index) => piecesOf(index, blanks ? withoutBlanks(item) : item.parts, beside));
    const total = pieces.reduce((sum, piece) => sum + (piece.kind === "rows" ? piece.count : 1), 0);
    const widest = Math.max(...this.items.map((item) => Math.max(item.oldLine + item.old.length, item.newLine + item.new.length)));
    this.host.style.setProperty("--digits", String(String(widest).length));
    this.host.classList.toggle("beside", beside);
    let shown = 0;
    const nodes: Node[] = [];
    for (const piece of pieces) {
      if (!whole && total > LARGE && shown >= FIRST) break;
      nodes.push(this.element(piece));
      shown += piece.kind === "rows" ? piece.count : 1;
    }
    if (shown < total) nodes.push(this.more(total - shown));
    if (blanks && pieces.every((piece) => piece.kind !== "rows" || piece.part.same)) nodes.push(note("Only blanks differ."));
    this.host.replaceChildren(...nodes);
  }

  private more(left: number): HTMLElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold more";
    button.textContent = `Show ${left.toLocaleString("en")} more lines`;
    button.onclick = this.options.onWhole;
    return button;
  }

  private element(piece: Piece): HTMLElement {
    if (piece.kind === "gap") return note(this.gapText(piece.item), "gap");
    if (piece.kind === "fold") return this.fold(piece);
    const element = document.createElement("div");
    element.className = "rows";
    element.style.setProperty("--n", String(piece.count + (piece.isFirst && this.options.choices ? 1 : 0)));
    this.pieces.set(element, piece);
    const off = whenNear(element, (isNear) => {
      if (!isNear) return;
      off();
      this.off.delete(off);
      this.build(element);
    });
    this.off.add(off);
    return element;
  }

  private gapText(index: number): string {
    const before = this.items[index - 1];
    const item = this.items[index];
    if (!before || !item) return "";
    const from = before.newLine + before.new.length;
    return from < item.newLine ? `lines ${from}–${item.newLine - 1} are unchanged` : "";
  }

  private fold(piece: Extract<Piece, { kind: "fold" }>): HTMLElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    button.textContent = piece.count === 1 ? "1 unchanged line" : `${piece.count.toLocaleString("en")} unchanged lines`;
    button.setAttribute("aria-expanded", "false");
    button.onclick = () => {
      const elements = slices(piece.item, piece.part, piece.at, piece.count, -1).map((slice) => this.element(slice));
      button.replaceWith(...elements);
      const first = elements[0];
      if (first) this.firstRow(first)?.focus({ preventScroll: true });
    };
    return button;
  }

  /** Makes the rows of a slice, if they are not there yet. */
  private build(element: HTMLElement): void {
    const piece = this.pieces.get(element);
    const item = piece && this.items[piece.item];
    if (!piece || !item || element.classList.contains("built")) return;
    const rows: Node[] = [];
    if (piece.isFirst && this.options.choices) rows.push(this.choice(piece.change));
    for (let index = 0; index < piece.count; index += 1) {
      const row = rowAt(piece.part, piece.at + index, this.options.beside);
      const line = this.options.beside ? this.besideRow(piece, item, row) : this.row(piece, item, row);
      if (!piece.part.same && piece.at + index === 0) line.dataset.change = String(piece.change);
      rows.push(line);
      if (endsFile(item, row)) rows.push(note("No newline at end of file", "gap"));
    }
    element.classList.add("built");
    element.replaceChildren(...rows);
    this.mark(element, piece);
    this.colour(element, piece, item);
  }

  private row(piece: Rows, item: Item, row: Row): HTMLElement {
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

  private besideRow(piece: Rows, item: Item, row: Row): HTMLElement {
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

  private code(piece: Rows, item: Item, side: Side, at: number): HTMLElement {
    const code = document.createElement("code");
    code.dataset.side = side;
    code.dataset.at = String(at);
    this.fill(code, piece, item, side, at, undefined);
    return code;
  }

  private fill(code: HTMLElement, piece: Rows, item: Item, side: Side, at: number, tokens: Token[] | undefined): void {
    const line = item[side][at] ?? "";
    const changed = !piece.part.same;
    const marks: Marks = {
      tokens,
      words: changed ? this.marked(piece, item, side, at) : undefined,
      trailing: changed && side === "new",
      returns: changed && (this.returns[piece.item] ?? false),
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
  private marked(piece: Rows, item: Item, side: Side, at: number): Span[] | undefined {
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

  // --- colours of the language

  private colour(element: HTMLElement, piece: Rows, item: Item): void {
    whenIdle(() => {
      if (!this.isGone && element.isConnected) void this.recolour(element, piece, item);
    });
  }

  private async recolour(element: HTMLElement, piece: Rows, item: Item): Promise<void> {
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
        if (tokens?.length) this.fill(code, piece, item, side, at, tokens);
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

  // --- choosing

  private choice(change: number): HTMLElement {
    const label = document.createElement("label");
    label.className = "pick";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.onchange = () => this.options.choices?.toggle(change);
    label.append(box, `Change ${change + 1} of ${this.options.choices?.total ?? 0}`);
    return label;
  }

  private mark(element: HTMLElement, piece: Rows): void {
    if (!this.options.choices || piece.change < 0) return;
    const isAccepted = this.accepted?.has(piece.change) ?? true;
    element.classList.toggle("refused", !isAccepted);
    const box = element.querySelector<HTMLInputElement>(".pick input");
    if (box) box.checked = isAccepted;
  }

  // --- keys

  /** Handles a key in the diff; whether it meant something here. */
  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const target = event.target as HTMLElement;
    if (target.matches("textarea, input")) return false;
    switch (event.key) {
      case "ArrowDown":
      case "j":
        return this.step(target, 1);
      case "ArrowUp":
      case "k":
        return this.step(target, -1);
      case "n":
      case "p":
        return this.toChange(target, event.key === "n" ? 1 : -1);
      case "c":
        return this.commentOn(target.closest<HTMLElement>(".l"));
      case "x":
        return this.toggle(target.closest<HTMLElement>(".rows"));
      default:
        return false;
    }
  }

  private stops(): HTMLElement[] {
    return [...this.host.querySelectorAll<HTMLElement>(".rows, .fold")];
  }

  private firstRow(element: HTMLElement): HTMLElement | null {
    if (!element.classList.contains("rows")) return element;
    this.build(element);
    return element.querySelector<HTMLElement>(".l");
  }

  private step(from: HTMLElement, by: 1 | -1): boolean {
    const line = from.closest<HTMLElement>(".l, .fold, .pick");
    const slice = line?.closest<HTMLElement>(".rows") ?? line;
    const stops = this.stops();
    if (!line || !slice) {
      const first = stops[0];
      if (first) this.firstRow(first)?.focus();
      return stops.length > 0;
    }
    const lines = slice === line ? [line] : [...slice.querySelectorAll<HTMLElement>(".l")];
    const next = lines[lines.indexOf(line) + by];
    if (next) {
      next.focus();
      return true;
    }
    const other = stops[stops.indexOf(slice) + by];
    if (!other) return false; // the page goes on to what is next
    const first = this.firstRow(other);
    const target = by > 0 || !other.classList.contains("rows") ? first : ([...other.querySelectorAll<HTMLElement>(".l")].pop() ?? null);
    target?.focus();
    return true;
  }

  private toChange(from: HTMLElement, by: 1 | -1): boolean {
    const stops = [...this.pieces].filter(([element, piece]) => element.isConnected && !piece.part.same && piece.at === 0);
    const here = from.closest<HTMLElement>(".rows, .fold");
    const follows = (element: HTMLElement) =>
      !here || (here !== element && !!(here.compareDocumentPosition(element) & (by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING)));
    const ahead = stops.filter(([element]) => follows(element));
    const target = by > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (target) this.firstRow(target[0])?.focus();
    return target !== undefined;
  }

  private toggle(slice: HTMLElement | null): boolean {
    const piece = slice && this.pieces.get(slice);
    if (!piece || piece.change < 0 || !this.options.choices) return false;
    this.options.choices.toggle(piece.change);
    return true;
  }

  // --- comments

  /** Opens a comment on the line in which a number was clicked. */
  click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    if (target.matches(".l > i")) this.commentOn(target.parentElement, target);
  }

  private commentOn(line: HTMLElement | null, gutter?: HTMLElement): boolean {
    const { comment } = this.options;
    const slice = line?.closest<HTMLElement>(".rows");
    const piece = slice && this.pieces.get(slice);
    const item = piece && this.items[piece.item];
    if (!comment || !line || !item) return false;
    const codes = [...line.querySelectorAll<HTMLElement>("code[data-at]")];
    const beside = gutter?.nextElementSibling;
    const code = beside instanceof HTMLElement && beside.dataset.at ? beside : codes[codes.length - 1];
    if (!code) return false;
    const side: Side = code.dataset.side === "old" ? "old" : "new";
    const at = Number(code.dataset.at);
    const number = (side === "old" ? item.oldLine : item.newLine) + at;
    openComment(line, number, (words) => comment(number, words, body(item[side][at] ?? "")));
    return true;
  }
}

function number(text: string): HTMLElement {
  const element = document.createElement("i");
  if (text) element.dataset.n = text;
  return element;
}

function note(text: string, kind = "quiet"): HTMLElement {
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

/** Which line ends an item has. "mixed": those on both sides together are not the same. */
export function lineEnds(item: Item): "LF" | "CRLF" | "mixed" {
  let crlf = 0;
  let lf = 0;
  for (const side of [item.old, item.new]) {
    for (const line of side) {
      if (line.endsWith("\r\n")) crlf += 1;
      else if (line.endsWith("\n")) lf += 1;
    }
  }
  return crlf === 0 ? "LF" : lf === 0 ? "CRLF" : "mixed";
}
