// What kind of screen and keyboard this is.

/** A finger instead of a mouse: on a phone Enter makes a new line, as everywhere there, and a button sends. */
export const isCoarse = matchMedia("(pointer: coarse)");
/** One of talk, changes and questions is seen at a time. The style sheet has the same width. */
export const isNarrow = matchMedia("(max-width: 760px)");
/** There Option, which is Alt, types characters of its own. */
export const isMac = /^(Mac|iP)/.test(navigator.platform);

/** Whether a key belongs to the choice of characters, as in Japanese: Safari says so of the last one in an older way only. */
export function isComposing({ isComposing, keyCode }: KeyboardEvent): boolean {
  return isComposing || keyCode === 229;
}
