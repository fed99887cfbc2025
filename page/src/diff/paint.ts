// Puts one line of code into an element: text nodes alone, with spans for tokens, changed words and hidden characters.

import { hiddenIn, named } from "../hidden";
import type { Token } from "../highlight/highlight";
import type { Span } from "./words";

const LONGEST = 5000;

export interface Marks {
  words?: readonly Span[] | undefined;
  tokens?: readonly Token[] | undefined;
  /** Whether blanks at the end of the line are marked: those that a change adds. */
  trailing?: boolean;
  /** Whether a carriage return at the end is shown. */
  returns?: boolean;
}

/** The line without what ends it. */
export function body(line: string): string {
  let end = line.length;
  if (line.charCodeAt(end - 1) === 10) end -= 1;
  if (line.charCodeAt(end - 1) === 13) end -= 1;
  return line.slice(0, end);
}

export function paint(into: HTMLElement, line: string, marks: Marks): void {
  const text = body(line);
  const hidden = hiddenIn(text);
  const blanks = marks.trailing ? text.length - text.trimEnd().length : 0;
  if (!hidden.length && !marks.words?.length && !marks.tokens?.length && !blanks) into.textContent = text;
  else into.replaceChildren(...pieces(text, hidden, blanks, marks));
  if (marks.returns && line.endsWith("\r\n")) into.append(sign("cr", "Carriage return"));
}

function sign(kind: string, title: string): HTMLElement {
  const element = document.createElement("span");
  element.className = kind;
  element.title = title;
  return element;
}

function pieces(text: string, hidden: [number, number][], blanks: number, marks: Marks): Node[] {
  const tokens = text.length > LONGEST ? [] : (marks.tokens ?? []);
  const words = marks.words ?? [];
  const cuts = new Set([0, text.length, text.length - blanks]);
  for (const list of [hidden, tokens, words]) for (const [start, end] of list) cuts.add(start).add(end);
  const places = [...cuts].filter((place) => place <= text.length).sort((a, b) => a - b);
  const nodes: Node[] = [];
  let token = 0;
  let word = 0;
  let unseen = 0;
  for (let index = 0; index + 1 < places.length; index += 1) {
    const at = places[index] as number;
    const end = places[index + 1] as number;
    while ((tokens[token]?.[1] ?? Infinity) <= at) token += 1;
    while ((words[word]?.[1] ?? Infinity) <= at) word += 1;
    while ((hidden[unseen]?.[1] ?? Infinity) <= at) unseen += 1;
    const kinds: string[] = [];
    if ((tokens[token]?.[0] ?? Infinity) <= at) kinds.push(tokens[token]?.[2] ?? "");
    if ((words[word]?.[0] ?? Infinity) <= at) kinds.push("w");
    if (at >= text.length - blanks) kinds.push("tw");
    const isHidden = (hidden[unseen]?.[0] ?? Infinity) <= at;
    if (isHidden) kinds.push("hid");
    const part = text.slice(at, end);
    if (!kinds.length) nodes.push(document.createTextNode(part));
    else {
      const span = document.createElement("span");
      span.className = kinds.join(" ");
      span.textContent = isHidden ? named(part) : part;
      nodes.push(span);
    }
  }
  return nodes;
}
