// The whole output of a command as text, in blocks that are drawn when they come near: any length opens at once.

import { whenNear } from "../near";
import { draw, PLAIN, type Style, styleAfter } from "./ansi";

const BLOCK = 200;
/** Characters of a line from which it is cut into several, so that one line cannot hold up the page. */
const LONGEST = 10_000;

export class OutputText {
  lineCount = 0;
  private style: Style = PLAIN;
  /** The last line, which may go on. */
  private open = "";
  private readonly off = new Set<() => void>();
  private last: { element: HTMLElement; lines: string[]; style: Style } | null = null;

  constructor(private readonly host: HTMLElement) {}

  append(text: string): void {
    const lines = (this.open + text).split("\n");
    this.open = lines.pop() ?? "";
    this.add(lines.flatMap(cut));
  }

  /** There is nothing more: what is left is a line. */
  finish(): void {
    if (this.open) this.add(cut(this.open));
    this.open = "";
  }

  end(): void {
    for (const off of this.off) off();
    this.off.clear();
  }

  private add(lines: string[]): void {
    this.lineCount += lines.length;
    let at = 0;
    if (this.last && this.last.lines.length < BLOCK) {
      at = BLOCK - this.last.lines.length;
      this.last.lines.push(...lines.slice(0, at));
      this.size();
    }
    for (; at < lines.length; at += BLOCK) this.begin(lines.slice(at, at + BLOCK));
  }

  private begin(lines: string[]): void {
    if (this.last) for (const line of this.last.lines) this.style = styleAfter(line, this.style);
    const element = document.createElement("div");
    element.className = "out-block";
    const block = { element, lines, style: this.style };
    this.last = block;
    this.size();
    this.host.append(element);
    // Blocks that are far away are emptied again: a long output must not fill the memory with nodes.
    this.off.add(
      whenNear(
        element,
        (isNear) => {
          element.classList.toggle("built", isNear);
          if (isNear) draw(element, block.lines, block.style);
          else element.replaceChildren();
        },
        1500,
      ),
    );
  }

  private size(): void {
    const { element, lines, style } = this.last ?? {};
    if (!element || !lines || !style) return;
    element.style.setProperty("--n", String(lines.length));
    if (element.classList.contains("built")) draw(element, lines, style);
  }
}

function cut(line: string): string[] {
  if (line.length <= LONGEST) return [line];
  const parts: string[] = [];
  for (let at = 0; at < line.length; at += LONGEST) parts.push(line.slice(at, at + LONGEST));
  return parts;
}
