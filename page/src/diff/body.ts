// Draws the lines of one file's diff, by itself and not with Preact: rows are made in slices, when they come near to what
// is seen, so that a diff of any length opens at once.

import { whenNear } from "../near";
import { Colours } from "./colours";
import { openComment } from "./comment";
import { DIFF_KEYS } from "./keys";
import { type Item, type Piece, piecesOf, type Side, type Slice, slices, withoutBlanks } from "./model";
import { body } from "./paint";
import { note, RowMaker } from "./rows";
import { Walker } from "./walking";

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

/** Rows above which a diff is folded. */
const LARGE = 400;
/** Rows that are shown of a folded diff, and built at once of any. */
const FIRST = 100;

export class DiffBody {
  private accepted: ReadonlySet<number> | undefined;
  private readonly off = new Set<() => void>();
  private readonly pieces = new Map<HTMLElement, Slice>();
  private readonly rows: RowMaker;
  private readonly colours: Colours;
  private readonly walker: Walker;

  constructor(
    private readonly host: HTMLElement,
    private readonly items: readonly Item[],
    private readonly options: BodyOptions,
  ) {
    this.rows = new RowMaker(items, options.beside);
    this.colours = new Colours(this.rows);
    this.walker = new Walker(host, this.pieces, (element) => this.build(element));
    this.draw();
  }

  /** Ends all that waits, so that nothing is drawn any more. */
  end(): void {
    this.colours.end();
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
    this.buildFirst();
  }

  /** Builds the rows that are seen first at once; the others are built when they come near. */
  private buildFirst(): void {
    let built = 0;
    for (const [element, piece] of this.pieces) {
      if ((built += piece.count) > FIRST) break;
      this.build(element);
    }
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
      if (first) this.walker.firstRow(first)?.focus({ preventScroll: true });
    };
    return button;
  }

  /** Makes the rows of a slice, if they are not there yet. */
  private build(element: HTMLElement): void {
    const piece = this.pieces.get(element);
    const item = piece && this.items[piece.item];
    if (!piece || !item || element.classList.contains("built")) return;
    const choice = piece.isFirst && this.options.choices ? [this.choice(piece.change)] : [];
    element.classList.add("built");
    element.replaceChildren(...choice, ...this.rows.rowsOf(piece, item));
    this.mark(element, piece);
    this.colours.colour(element, piece, item);
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

  private mark(element: HTMLElement, piece: Slice): void {
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
    if (event.key === "ArrowDown" || event.key === "j") return this.walker.step(target, 1);
    if (event.key === "ArrowUp" || event.key === "k") return this.walker.step(target, -1);
    switch (DIFF_KEYS[event.key]) {
      case "next change":
        return this.walker.toChange(target, 1);
      case "change before":
        return this.walker.toChange(target, -1);
      case "comment":
        return this.commentOn(target.closest<HTMLElement>(".l"));
      case "toggle":
        return this.toggle(target.closest<HTMLElement>(".rows"));
      default:
        return false;
    }
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
