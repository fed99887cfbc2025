// Moves the focus through a diff, line by line and change by change.

import type { Slice } from "./model";

export class Walker {
  /** `build` makes the rows of a slice, if they are not there yet. */
  constructor(
    private readonly host: HTMLElement,
    private readonly pieces: ReadonlyMap<HTMLElement, Slice>,
    private readonly build: (element: HTMLElement) => void,
  ) {}

  private stops(): HTMLElement[] {
    return [...this.host.querySelectorAll<HTMLElement>(".rows, .fold")];
  }

  /** The first row of a slice, which is built for it; or the fold itself. */
  firstRow(element: HTMLElement): HTMLElement | null {
    if (!element.classList.contains("rows")) return element;
    this.build(element);
    return element.querySelector<HTMLElement>(".l");
  }

  /** Goes to the next line, or the one before; false at the end of the diff. */
  step(from: HTMLElement, by: 1 | -1): boolean {
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

  /** Goes to the next change, or the one before; false if there is none. */
  toChange(from: HTMLElement, by: 1 | -1): boolean {
    const stops = [...this.pieces].filter(([element, piece]) => element.isConnected && !piece.part.same && piece.at === 0);
    const here = from.closest<HTMLElement>(".rows, .fold");
    const follows = (element: HTMLElement) =>
      !here || (here !== element && !!(here.compareDocumentPosition(element) & (by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING)));
    const ahead = stops.filter(([element]) => follows(element));
    const target = by > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (target) this.firstRow(target[0])?.focus();
    return target !== undefined;
  }
}
