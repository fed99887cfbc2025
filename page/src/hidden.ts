// Characters that nobody sees, or that change the order in which text is read, are shown by their number.
// The same set as in src/crow/visible.py (what is never in its place), plus joiners and
// selectors that join nothing; tests/test_page_parts.py compares the two.

const NEVER =
  "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2060-\\u2064\\ufff9-\\ufffb" +
  "\\u2028\\u2029\\u202a-\\u202e\\u2065-\\u206f\\u{e0000}-\\u{e00ff}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\ud800-\\udfff";
/** What joins or chooses shapes in some scripts and pictures: after these it joins nothing. */
const JOINTS = "\\u034f\\u180b-\\u180d\\u180f\\u200c\\u200d\\u2800\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
const JOINS_NOTHING = `(?<=^|[\\x00-\\x7f\\u200c\\u200d])[${JOINTS}](?!\\u20e3)`;
const FILLERS = "[\\u115f\\u1160\\u3164\\uffa0\\u17b4\\u17b5]";
const HIDDEN = new RegExp(`[${NEVER}]|(?<!^)\\ufeff|${JOINS_NOTHING}|${FILLERS}`, "gu");
const ASCII = /^[\t\x20-\x7e]*$/;

/** What stands for a hidden character where a person reads: `⟨U+202E⟩`. */
export function named(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The places of hidden characters in one line (without its end). */
export function hiddenIn(line: string): [start: number, end: number][] {
  if (ASCII.test(line)) return [];
  return Array.from(line.matchAll(HIDDEN), (found) => [found.index, found.index + found[0].length]);
}

/** A line in which every hidden character has its visible form; tabs are what they are. */
export function visible(line: string): string {
  return ASCII.test(line) ? line : line.replace(HIDDEN, named);
}

/** The same for titles, paths and names, in which tabs and ends of lines are hidden characters too. */
export function plainly(text: string): string {
  return visible(text).replace(/[\t\r\n]/g, named);
}
