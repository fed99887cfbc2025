// Text inside a block of Markdown, as nodes: emphasis, code, links. What opens and is never closed is text.
//
// The text is a model's, or a file's that a model read, so it is hostile. No HTML is made of it, links lead to the web or to
// mail only, and an image is a link: fetching it would tell its server what the text says.

import { pieces } from "../pieces";

const GOOD_LINK = /^(https?:\/\/|mailto:)/i;
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
const ESCAPED = /[!-/:-@[-`{-~]/;
const PLAIN = /[^\\`<![\]*_~\n&hH]+/y;
const ADDRESS = /https?:\/\/[^\s<>`"]+/iy;
const IN_BRACKETS = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/iy;
const BREAK = /<br\s*\/?>/iy;
const ENTITY = /&(amp|lt|gt|quot|#39|apos|nbsp);/y;
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", apos: "'", nbsp: "\u00a0" };
/** Formulas are shown as they are written; what looks like emphasis in them is none. */
const FORMULA = /\\\([^\n]{1,2000}?\\\)|\\\[[^]{1,2000}?\\\]/y;
const IN_FORMULA = /[\\^_{}=+]/;
const TARGET = /\(\s*(?:(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))+))(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*)?\)/y;
const NOTE = /^\^[^\s\]]+$/;
/** Emphasis in emphasis, brackets in brackets: what opened before so many others is text. More would take the browser long. */
const DEEPEST = 32;

/** A run of signs that may begin or end emphasis. */
interface Delimiter {
  node: Text;
  sign: string;
  canOpen: boolean;
  canClose: boolean;
}
interface Bracket {
  node: Text;
  at: number;
  isImage: boolean;
  /** How many delimiters there were before it. */
  delimiters: number;
}

export function inlineInto(parent: HTMLElement, text: string): void {
  new InlineReader(parent, text).read();
}

class InlineReader {
  private at = 0;
  private plain = "";
  private delimiters: Delimiter[] = [];
  private readonly brackets: Bracket[] = [];
  /** Lengths of runs of backquotes of which there is no more from here on. */
  private readonly unclosed = new Set<number>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly text: string,
  ) {}

  read(): void {
    while (this.at < this.text.length) {
      const plain = this.match(PLAIN);
      if (plain) this.plain += plain[0];
      else this.sign(this.text[this.at]!);
    }
    this.flush();
    this.emphasise(0);
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private sign(sign: string): void {
    switch (sign) {
      case "\\":
        return this.escape();
      case "`":
        return this.code();
      case "<":
        return this.angle();
      case "&": {
        const entity = this.match(ENTITY);
        return entity ? void (this.plain += ENTITIES[entity[1]!]) : this.take(1);
      }
      case "h":
      case "H":
        return this.address();
      case "\n":
        this.plain = this.plain.trimEnd();
        this.at += 1;
        return void this.add(document.createElement("br"));
      case "!":
        return this.text[this.at + 1] === "[" ? this.open(2) : this.take(1);
      case "[":
        return this.open(1);
      case "]":
        return this.close();
      default:
        return this.delimiter(sign);
    }
  }

  /** So many characters are just text. */
  private take(count: number): void {
    this.plain += this.text.slice(this.at, this.at + count);
    this.at += count;
  }

  private escape(): void {
    FORMULA.lastIndex = this.at;
    const formula = FORMULA.exec(this.text)?.[0] ?? "";
    if (IN_FORMULA.test(formula.slice(2, -2))) return this.take(formula.length);
    const next = this.text[this.at + 1] ?? "";
    if (next === "\n") this.at += 1;
    else if (ESCAPED.test(next)) {
      this.at += 1;
      this.take(1);
    } else this.take(1);
  }

  private code(): void {
    let length = 1;
    while (this.text[this.at + length] === "`") length += 1;
    const start = this.at + length;
    for (let end = start; !this.unclosed.has(length); ) {
      end = this.text.indexOf("`", end);
      if (end < 0) {
        this.unclosed.add(length);
        break;
      }
      let closing = 1;
      while (this.text[end + closing] === "`") closing += 1;
      if (closing === length) {
        const written = this.text.slice(start, end).replaceAll("\n", " ");
        const code = document.createElement("code");
        code.textContent = written.startsWith(" ") && written.endsWith(" ") && /[^ ]/.test(written) ? written.slice(1, -1) : written;
        this.add(code);
        this.at = end + length;
        return;
      }
      end += closing;
    }
    this.take(length);
  }

  private angle(): void {
    const link = this.match(IN_BRACKETS);
    if (link) this.add(linked(document.createElement("a"), link[1]!, link[1]!));
    else if (this.match(BREAK)) this.add(document.createElement("br"));
    else this.take(1);
  }

  /** An address that just stands there. Marks behind it belong to the sentence, and so does a bracket that it did not open. */
  private address(): void {
    const before = this.text[this.at - 1];
    ADDRESS.lastIndex = this.at;
    const found = before && !/[\s*_~([]/.test(before) ? null : ADDRESS.exec(this.text);
    if (!found) return this.take(1);
    let end = found[0].length;
    let unopened = found[0].split(")").length - found[0].split("(").length;
    for (let isCut = true; isCut; ) {
      const last = found[0][end - 1]!;
      isCut = last === ")" ? unopened-- > 0 : /[?!.,:;*_~'\]\\|]/.test(last);
      if (isCut) end -= 1;
    }
    const address = found[0].slice(0, end);
    if (/^https?:\/\/?$/i.test(address)) return this.take(1);
    this.add(linked(document.createElement("a"), address, address));
    this.at += address.length;
  }

  private delimiter(sign: string): void {
    let length = 1;
    while (this.text[this.at + length] === sign) length += 1;
    if (sign === "~" && length !== 2) return this.take(length);
    const before = this.at ? [...this.text.slice(Math.max(0, this.at - 2), this.at)].at(-1)! : " ";
    const after = String.fromCodePoint(this.text.codePointAt(this.at + length) ?? 32);
    const opensLeft = !/\s/.test(after) && (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
    const closesRight = !/\s/.test(before) && (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
    this.flush();
    const node = document.createTextNode(sign.repeat(length));
    this.parent.append(node);
    this.at += length;
    if (!opensLeft && !closesRight) return;
    this.delimiters.push({
      node,
      sign,
      canOpen: opensLeft && (sign !== "_" || !closesRight || PUNCTUATION.test(before)),
      canClose: closesRight && (sign !== "_" || !opensLeft || PUNCTUATION.test(after)),
    });
  }

  private open(length: number): void {
    this.flush();
    const node = document.createTextNode(this.text.slice(this.at, this.at + length));
    this.parent.append(node);
    this.at += length;
    if (this.brackets.length >= DEEPEST) this.brackets.shift();
    this.brackets.push({ node, at: this.at, isImage: length === 2, delimiters: this.delimiters.length });
  }

  private close(): void {
    const bracket = this.brackets.pop();
    if (!bracket) return this.take(1);
    const written = this.text.slice(bracket.at, this.at);
    this.at += 1;
    const target = this.match(TARGET);
    if (!target && !(NOTE.test(written) && !bracket.isImage)) {
      this.plain += "]";
      return;
    }
    this.flush();
    this.emphasise(bracket.delimiters);
    const made = document.createElement(target ? "a" : "sup");
    while (bracket.node.nextSibling) made.append(bracket.node.nextSibling);
    bracket.node.remove();
    if (!target) made.textContent = `[${written.slice(1)}]`;
    for (const inner of made.querySelectorAll("a")) inner.replaceWith(...inner.childNodes); // no links in links
    const address = (target?.[1] ?? target?.[2] ?? "").replace(/\\([!-/:-@[-`{-~])/g, "$1");
    if (target) linked(made, address, made.textContent ? "" : address);
    this.parent.append(made);
  }

  private add(node: Node): void {
    this.flush();
    this.parent.append(node);
  }

  private flush(): void {
    if (this.plain) this.parent.append(...pieces(this.plain));
    this.plain = "";
  }

  /** Makes emphasis of the delimiters from this index on: each that closes looks back for the nearest that opens. */
  private emphasise(from: number): void {
    const open: Delimiter[] = [];
    for (const closer of this.delimiters.splice(from)) {
      while (closer.canClose && closer.node.length) {
        let at = open.length - 1;
        while (at >= 0 && !matches(open[at]!, closer)) at -= 1;
        if (at < 0) break;
        open.length = at + 1; // what stands between the two opens nothing any more
        wrap(open[at]!, closer);
        if (!open[at]!.node.length) open.pop()!.node.remove();
      }
      if (!closer.node.length) closer.node.remove();
      else if (closer.canOpen) open.push(closer);
      if (open.length > DEEPEST) open.shift();
    }
  }
}

/** Puts what stands between two delimiters into an element, and takes its signs off them. */
function wrap(opener: Delimiter, closer: Delimiter): void {
  const length = Math.min(2, opener.node.length, closer.node.length);
  const made = document.createElement(closer.sign === "~" ? "s" : length === 2 ? "strong" : "em");
  while (opener.node.nextSibling && opener.node.nextSibling !== closer.node) made.append(opener.node.nextSibling);
  opener.node.after(made);
  for (const { node } of [opener, closer]) node.data = node.data.slice(length);
}

function matches(opener: Delimiter, closer: Delimiter): boolean {
  if (!opener.canOpen || opener.sign !== closer.sign) return false;
  const isOdd = (opener.canClose || closer.canOpen) && (opener.node.length + closer.node.length) % 3 === 0;
  return !isOdd || (opener.node.length % 3 === 0 && closer.node.length % 3 === 0);
}

/** An address of another kind leads nowhere; it can be read in the title. */
function linked(node: HTMLElement, address: string, text: string): HTMLElement {
  if (text) node.textContent = text;
  node.title = address;
  if (!GOOD_LINK.test(address)) return node;
  node.setAttribute("href", address);
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
  return node;
}
