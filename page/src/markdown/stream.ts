// Markdown as it arrives. What is complete is drawn once and never read again: blocks, items of a list, rows of a table, lines of code.
// Only a paragraph is read anew with each piece, as a sign at its end can change all of it.

import { type Block, BlockReader, type Code, linesOf, type List } from "./blocks";
import { colour, drawBlock, type Drawn, redraw } from "./drawing";
import { openCode, type WriteCode } from "./open_code";

/** Of what is written, so many blocks at the end can still become something else; of the last one, so many items or rows. */
const UNSURE = 2;
/** After each drawing nothing is drawn for so many times as long: a paragraph of megabytes must leave time for all else. */
const REST = 8;
/** And for a millisecond for so many characters, as the browser lays out all of a block again: of code in about a tenth of that. */
const LAID_OUT = 4000;

export interface MarkdownStream {
  write(text: string): void;
  /** The text is complete. */
  end(): void;
}

/** Draws Markdown into an element, piece by piece. */
export function markdownInto(root: HTMLElement): MarkdownStream {
  /** The end of the text, which is read again, and what is drawn of it. */
  let unsure = "";
  /** What has come since it was last drawn. */
  let news = "";
  let drawn: Drawn[] = [];
  /** Whether the text begins in a list, some of whose items are no longer known, and which is a loose one. */
  let isLoose = false;
  /** Whether all of the text was read. */
  let isRead = true;
  /** Draws what follows if the text ends in code. */
  let writeCode: WriteCode | undefined;
  let restsUntil = 0;
  let later: ReturnType<typeof setTimeout> | undefined;

  const draw = () => {
    const began = performance.now();
    clearTimeout(later);
    later = undefined;
    if (!writeCode?.(news)) read();
    news = "";
    const ended = performance.now();
    restsUntil = ended + (ended - began) * REST + unsure.length / LAID_OUT;
  };
  const read = () => {
    isRead = true;
    const lines = linesOf(unsure);
    const reader = new BlockReader(lines);
    const blocks = reader.read();
    if (isLoose) (blocks[0] as List).isLoose = true;
    drawn = redraw(root, drawn, blocks, drawBlock);
    const last = blocks.at(-1);
    const start = reader.starts.at(-1);
    if (!last || start === undefined) return;
    const end = start + linesOf(last.raw).length;
    writeCode = last.codeOf && codeWriter(last.codeOf, lines[end - 1]!, lines.slice(end));
    // A surrogate, or a carriage return whose line feed is still to come, stands in the last line, which is kept.
    const sure = ("items" in last ? last.items.length : "rows" in last ? last.rows.length : 0) - UNSURE;
    if (sure > 0) {
      const first = "items" in last ? last.items[sure]!.at : start + 2 + sure;
      keep([...("rows" in last ? lines.slice(start, start + 2) : []), ...lines.slice(first)], 1);
      drawn[0]!.inner = drawn[0]!.inner.slice(sure);
      drawn[0]!.what.raw = ""; // which is no longer what it is compared with
      isLoose = "items" in last && last.isLoose;
    } else if (blocks.length > UNSURE) keep(lines.slice(reader.starts.at(-UNSURE)), UNSURE);
  };
  /** Keeps the last blocks, which are these lines. */
  const keep = (lines: readonly string[], blocks: number) => {
    unsure = lines.join("\n");
    drawn = drawn.slice(-blocks);
    isLoose = false;
  };
  /** `blank`: the lines after the last one of the code, which belong to it if more code follows. */
  const codeWriter = (codeOf: NonNullable<Block["codeOf"]>, last: string, blank: readonly string[]): WriteCode | undefined => {
    const codes = root.lastElementChild!.getElementsByTagName("code");
    const write = openCode(codes[codes.length - 1]!, codeOf, last);
    return !blank.length || write(["", ...blank].join("\n")) ? write : undefined;
  };
  return {
    write: (text) => {
      unsure += text;
      news += text;
      isRead = false;
      const rest = restsUntil - performance.now();
      if (rest <= 0) draw();
      else later ??= setTimeout(draw, rest);
    },
    end: () => {
      clearTimeout(later);
      if (!isRead) read();
      for (const { what, node } of drawn) if (what.is === "code") colour(node, what as Code);
    },
  };
}
