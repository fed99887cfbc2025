// A block of code whose end is still to come: what arrives is added to it, and nothing before it is read again.

import { type CodeOfLine, linesOf } from "./blocks";

/** A line that begins so may still end the code, or lie outside of the list or the quote that the code is in. */
const UNSURE = /^[\s>`~]*$/;
/** Adding to a text node copies it, so that one that has become long is followed by another. */
const LONGEST_NODE = 8_000;

/** Draws what follows. False if some of it may be no code: then the text has to be read again. */
export type WriteCode = (text: string) => boolean;

/** `code` shows the code up to the line `last`, or some of that line. */
export function openCode(code: HTMLElement, codeOf: CodeOfLine, last: string): WriteCode {
  /** The last line, as long as it is not sure that it is code. */
  let line: string | undefined = last;
  /** How many characters of the last line's code are drawn. */
  let drawn = codeOf(last)?.length ?? 0;
  /** What belongs to the code if more code follows: ends of lines, and lines of blanks. */
  let waiting = "";
  /** A carriage return, whose line feed may be still to come. */
  let held = "";
  return (text) => {
    const lines = linesOf(held + text);
    held = lines.at(-1)!.endsWith("\r") ? "\r" : "";
    let found = "";
    for (const [index, more] of lines.entries()) {
      const isLast = index === lines.length - 1;
      let added: string | undefined = isLast && held ? more.slice(0, -1) : more;
      if (index) {
        waiting += "\n";
        line = "";
        drawn = 0;
      }
      if (line !== undefined) {
        line += added;
        const isUnsure = UNSURE.test(line);
        if (isLast && isUnsure) break;
        added = codeOf(line)?.slice(drawn);
        if (added === undefined) return false;
        line = undefined;
        if (!added.trim()) {
          waiting += added;
          continue;
        }
      }
      if (added) {
        found += waiting + added;
        waiting = "";
      }
    }
    appendText(code, found);
    return true;
  };
}

/** Adds text to an element without replacing a node that is there, so that what is selected in it stays so. */
export function appendText(element: HTMLElement, text: string): void {
  const last = element.lastChild;
  if (!text) return;
  if (last instanceof Text && last.length < LONGEST_NODE) last.appendData(text);
  else element.append(text);
}
