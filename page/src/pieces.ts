// Cuts long words into pieces, each for a text node of its own: nothing else is seen of it, or copied.
//
// To find where a word of a hundred thousand characters is broken into lines, a browser shapes its rest anew for each line
// (where letters are kerned, as in most fonts), and stands still for seconds. It shapes each node by itself.

const LONGEST_WORD = 1000;
const PIECE = 400;

export function pieces(text: string): string[] {
  if (text.length <= LONGEST_WORD) return [text];
  const cuts = [0];
  for (const { 0: word, index } of text.matchAll(/\S+/g)) {
    if (word.length <= LONGEST_WORD) continue;
    for (let at = PIECE; at < word.length; at += PIECE) cuts.push(isLowSurrogate(word, at) ? index + at + 1 : index + at);
  }
  return cuts.map((cut, index) => text.slice(cut, cuts[index + 1]));
}

function isLowSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
