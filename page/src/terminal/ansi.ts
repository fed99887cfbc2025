// Output of a command as text nodes: colours are kept, everything else that would steer a terminal is left out.

import { visible } from "../hidden";

/** How text is drawn. Colours are an index below 256, or "#rrggbb". */
export interface Style {
  fg: number | string | null;
  bg: number | string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

export const PLAIN: Style = { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, inverse: false };

/** CSI, OSC, DCS and other strings, two-character escapes. What is not closed goes on to the end of the line. */
const ESCAPES = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]/g;
const COLOURS = /\x1b\[([\d;:]*)m/g;

/** The style after the sequences of a text. */
export function styleAfter(text: string, style: Style): Style {
  let now = style;
  if (text.includes("\x1b[")) for (const found of text.matchAll(COLOURS)) now = changed(now, found[1] ?? "");
  return now;
}

function changed(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => Number(code || 0));
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code === 39) next.fg = null;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 49) next.bg = null;
    else if (code === 38 || code === 48) {
      const { colour, used } = extended(codes, at + 1);
      if (code === 38) next.fg = colour;
      else next.bg = colour;
      at += used;
    }
  }
  return next;
}

function extended(codes: number[], at: number): { colour: number | string | null; used: number } {
  if (codes[at] === 5) return { colour: indexed(codes[at + 1] ?? 0), used: 2 };
  if (codes[at] !== 2) return { colour: null, used: 1 };
  return { colour: hex(codes[at + 1] ?? 0, codes[at + 2] ?? 0, codes[at + 3] ?? 0), used: 4 };
}

function hex(...parts: number[]): string {
  return `#${parts.map((part) => Math.min(255, Math.max(0, part)).toString(16).padStart(2, "0")).join("")}`;
}

/** One of the 256 colours: the first sixteen are the theme's. */
function indexed(index: number): number | string {
  if (index < 16) return index;
  if (index > 231) return hex(...Array<number>(3).fill(8 + (Math.min(index, 255) - 232) * 10));
  const level = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return hex(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

/** Fills an element with lines, from a style on. */
export function draw(into: HTMLElement, lines: readonly string[], from: Style): void {
  let style = from;
  const nodes: Node[] = [];
  lines.forEach((line, index) => {
    let at = 0;
    const kept = overwritten(line);
    for (const found of kept.matchAll(ESCAPES)) {
      push(nodes, kept.slice(at, found.index), style);
      if (found[2] === "m") style = changed(style, found[1] ?? "");
      at = found.index + found[0].length;
    }
    push(nodes, kept.slice(at), style);
    if (index + 1 < lines.length) nodes.push(document.createTextNode("\n"));
    if (kept !== line) style = styleAfter(line, style);
  });
  into.replaceChildren(...nodes);
}

/** What is left of a line that was written over: what came after the last return to its beginning. */
function overwritten(line: string): string {
  let end = line.length;
  while (line[end - 1] === "\r") end -= 1;
  return line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
}

function push(nodes: Node[], text: string, style: Style): void {
  if (!text) return;
  const node = document.createTextNode(visible(text.replace(/[\x07\x0e\x0f]/g, "")));
  nodes.push(style === PLAIN || isPlain(style) ? node : styled(node, style));
}

function isPlain(style: Style): boolean {
  return style.fg === null && style.bg === null && !style.bold && !style.dim && !style.italic && !style.underline && !style.inverse;
}

function styled(node: Text, style: Style): HTMLElement {
  const span = document.createElement("span");
  const kinds: string[] = [];
  for (const kind of ["bold", "dim", "italic", "underline", "inverse"] as const) if (style[kind]) kinds.push(`t-${kind}`);
  const [fg, bg] = style.inverse ? [style.bg, style.fg] : [style.fg, style.bg];
  if (typeof fg === "number") kinds.push(`t-f${fg}`);
  else if (fg) span.style.color = fg;
  if (typeof bg === "number") kinds.push(`t-b${bg}`);
  else if (bg) span.style.backgroundColor = bg;
  span.className = kinds.join(" ");
  span.append(node);
  return span;
}
