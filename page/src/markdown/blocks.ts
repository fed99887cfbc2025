// Markdown's blocks: which lines are a paragraph, a list, a table, code. GitHub's rules, except where models mean otherwise:
// `---` under a paragraph is a rule, a list may be indented by two under a numbered one, and no cell of a table is dropped.

interface Base {
  /** The lines that the block was read from, without the marks of the blocks around it: equal lines are drawn equally. */
  raw: string;
  /** If the block ends in code whose end is still to come: what one more line adds to that code, or nothing if it may not belong to it. */
  codeOf?: CodeOfLine | undefined;
}
/** The part of a line that is code; nothing if the line may be something else. */
export type CodeOfLine = (line: string) => string | undefined;
export interface Inline extends Base {
  is: "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6";
  text: string;
}
export interface Code extends Base {
  is: "code";
  language: string;
  text: string;
  /** Whether its end was written. */
  isClosed: boolean;
}
export interface Rule extends Base {
  is: "hr";
}
export interface Quote extends Base {
  is: "blockquote";
  blocks: Block[];
}
export interface List extends Base {
  is: "ul" | "ol";
  start: number;
  isLoose: boolean;
  items: ListItem[];
}
export interface ListItem extends Base {
  /** The number of its first line, among the lines that the list was read from. */
  at: number;
  /** Whether a task is done; nothing if it is none. */
  isDone: boolean | undefined;
  blocks: Block[];
}
export interface Table extends Base {
  is: "table";
  aligned: string[];
  head: string;
  rows: string[];
}
export type Block = Inline | Code | Rule | Quote | List | Table;

/** Blocks in blocks in blocks: what is deeper is text. */
const DEEPEST = 24;
const FENCE = /^ {0,3}(`{3,}(?!`)(?!.*`)|~{3,})\s*(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?![^ \t])(.*)$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^(\s*)([-+*]|\d{1,9}[.)])([ \t]+|$)/;
const ALIGNMENT = /^ {0,3}\|?[ \t]*:?-+:?(?:[ \t]*\|[ \t]*:?-+:?)*[ \t]*\|?$/;
const TASK = /^\[([ xX])\](?=\s)/;

export const linesOf = (text: string): string[] => text.split(/\r?\n|\r(?!$)/);
const isBlank = (line: string): boolean => !line.trim();

/** Columns of white space at the beginning. */
function indentOf(line: string): number {
  let columns = 0;
  for (const character of line) {
    if (character === " ") columns += 1;
    else if (character === "\t") columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

/** The line without so many columns of white space; of a tab that is only partly taken away the rest is blanks. */
function dedent(line: string, columns: number): string {
  let at = 0;
  let column = 0;
  while (column < columns && (line[at] === " " || line[at] === "\t")) {
    column += line[at] === " " ? 1 : 4 - (column % 4);
    at += 1;
  }
  return " ".repeat(Math.max(0, column - columns)) + line.slice(at);
}

export class BlockReader {
  private at = 0;
  /** Where each block begins, by its index. */
  readonly starts: number[] = [];

  constructor(
    private readonly lines: readonly string[],
    private readonly depth = 0,
  ) {}

  read(): Block[] {
    const blocks: Block[] = [];
    while (this.at < this.lines.length) {
      if (isBlank(this.line)) {
        this.at += 1;
        continue;
      }
      this.starts.push(this.at);
      const start = this.at;
      const block = this.next();
      blocks.push({ ...block, raw: this.lines.slice(start, this.at).join("\n") });
    }
    return blocks;
  }

  private get line(): string {
    return this.lines[this.at] ?? "";
  }

  /** Reads one block, without `raw`, which `read` adds. */
  private next(): Block {
    const { line } = this;
    if (indentOf(line) >= 4) return this.indented();
    const fence = FENCE.exec(line);
    if (fence) return this.fenced(fence[1]!, fence[2]!.trim());
    const heading = HEADING.exec(line);
    if (heading) {
      this.at += 1;
      return { is: `h${heading[1]!.length}` as Inline["is"], text: withoutClosing(heading[2]!), raw: "" };
    }
    if (RULE.test(line)) {
      this.at += 1;
      return { is: "hr", raw: "" };
    }
    if (this.depth < DEEPEST) {
      if (QUOTE.test(line)) return this.quote();
      const marker = MARKER.exec(line);
      if (marker) return this.list(marker[2]!);
    }
    return this.isTable() ? this.table() : this.paragraph();
  }

  private indented(): Code {
    const text: string[] = [];
    while (this.at < this.lines.length && (isBlank(this.line) || indentOf(this.line) >= 4)) {
      text.push(dedent(this.line, 4));
      this.at += 1;
    }
    while (isBlank(text.at(-1)!)) {
      text.pop();
      this.at -= 1;
    }
    return { is: "code", language: "", text: text.join("\n"), isClosed: this.at < this.lines.length, raw: "" };
  }

  private fenced(fence: string, about: string): Code {
    const indent = indentOf(this.line);
    const end = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`);
    const text: string[] = [];
    for (this.at += 1; this.at < this.lines.length && !end.test(this.line); this.at += 1) text.push(dedent(this.line, indent));
    const isClosed = this.at < this.lines.length;
    if (isClosed) this.at += 1;
    // As long as no line has followed, what comes next may belong to the name of the language.
    const codeOf: CodeOfLine | undefined = isClosed || !text.length ? undefined : (line) => (end.test(line) ? undefined : dedent(line, indent));
    return { is: "code", language: about.split(/\s/)[0]!, text: text.join("\n"), isClosed, raw: "", codeOf };
  }

  private quote(): Quote {
    const inner = new Inner();
    while (this.at < this.lines.length) {
      const { line } = this;
      if (QUOTE.test(line)) inner.push(line.replace(QUOTE, ""));
      else if (!isBlank(line) && !this.beginsBlock() && inner.endsInText) inner.push(line);
      else break;
      this.at += 1;
    }
    const blocks = new BlockReader(inner.lines, this.depth + 1).read();
    const inside = blocks.at(-1)?.codeOf;
    const codeOf: CodeOfLine | undefined = inside && ((line) => (QUOTE.test(line) ? inside(line.replace(QUOTE, "")) : undefined));
    return { is: "blockquote", blocks, raw: "", codeOf };
  }

  private list(marker: string): List {
    const kind = marker.at(-1)!;
    const isNumbered = /\d/.test(marker);
    const items: ListItem[] = [];
    let isLoose = false;
    let codeOf: CodeOfLine | undefined;
    while (this.at < this.lines.length) {
      const found = MARKER.exec(this.line);
      if (!found || found[2]!.at(-1) !== kind || indentOf(this.line) > 3 || RULE.test(this.line)) break;
      const start = this.at;
      const { inner, hasGap, content } = this.itemLines(found);
      const task = TASK.exec(inner[0] ?? "");
      if (task) inner[0] = inner[0]!.slice(3).trimStart();
      const blocks = new BlockReader(inner, this.depth + 1).read();
      const gap = this.at;
      while (this.at < this.lines.length && isBlank(this.line)) this.at += 1;
      const next = MARKER.exec(this.line);
      const goesOn = this.at < this.lines.length && next !== null && next[2]!.at(-1) === kind;
      isLoose ||= hasGap || (goesOn && this.at > gap);
      items.push({ isDone: task ? task[1] !== " " : undefined, blocks, raw: this.lines.slice(start, gap).join("\n"), at: start });
      if (!goesOn) {
        this.at = gap;
        const inside = blocks.at(-1)?.codeOf;
        codeOf = inside && ((line) => (isBlank(line) ? inside("") : indentOf(line) >= content ? inside(dedent(line, content)) : undefined));
        break;
      }
    }
    return { is: isNumbered ? "ol" : "ul", start: Number.parseInt(marker, 10) || 0, isLoose, items, raw: "", codeOf };
  }

  /** The lines of one item, without the columns of `content` that indent them; whether an empty line parts its blocks. */
  private itemLines([whole, before, marker, gap]: RegExpExecArray): { inner: string[]; hasGap: boolean; content: number } {
    const outer = indentOf(before!);
    const wide = indentOf(" ".repeat(outer + marker!.length) + gap) - outer - marker!.length;
    const rest = this.line.slice(whole.length);
    // Five blanks and more are code that begins here; without any text what follows is indented by one.
    const content = outer + marker!.length + (rest && wide <= 4 ? wide : 1);
    const inner = new Inner();
    inner.push(rest && wide > 4 ? " ".repeat(wide - 1) + rest : rest);
    let hasGap = false;
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const { line } = this;
      const indent = indentOf(line);
      const isNested = indent >= content || (indent >= outer + 2 && MARKER.test(line));
      if (isBlank(line)) inner.push("");
      else if (isNested) {
        hasGap ||= inner.lines.length > 1 && inner.lines.at(-1) === "" && !inner.isInFence;
        inner.push(dedent(line, Math.min(content, indent)));
      } else if (!MARKER.test(line) && !this.beginsBlock() && inner.endsInText) inner.push(line.trimStart());
      else break;
    }
    const { lines } = inner;
    while (lines.length > 1 && lines.at(-1) === "") {
      lines.pop();
      this.at -= 1;
    }
    return { inner: lines, hasGap, content };
  }

  private isTable(): boolean {
    const next = this.lines[this.at + 1] ?? "";
    return this.line.includes("|") && ALIGNMENT.test(next.trimEnd()) && cellsOf(next).length === cellsOf(this.line).length;
  }

  private table(): Table {
    const head = this.line;
    const aligned = cellsOf(this.lines[this.at + 1]!).map((cell) =>
      cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "end") : "",
    );
    const rows: string[] = [];
    for (this.at += 2; this.at < this.lines.length && !isBlank(this.line) && !this.beginsBlock(); this.at += 1) {
      if (!this.line.includes("|")) break;
      rows.push(this.line);
    }
    return { is: "table", head, aligned, rows, raw: "" };
  }

  private paragraph(): Inline {
    const text = [this.line.trimStart()];
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      if (isBlank(this.line)) break;
      if (/^ {0,3}=+[ \t]*$/.test(this.line)) {
        this.at += 1;
        return { is: "h1", text: text.join("\n"), raw: "" };
      }
      if (this.beginsBlock() || this.isTable()) break;
      text.push(this.line.trimStart());
    }
    return { is: "p", text: text.join("\n"), raw: "" };
  }

  /** Whether a block begins here that ends a paragraph before it. */
  private beginsBlock(): boolean {
    const { line } = this;
    if (indentOf(line) >= 4) return false;
    const marker = MARKER.exec(line);
    const isItem = marker !== null && line.length > marker[0].length && !(Number.parseInt(marker[2]!, 10) !== 1 && /\d/.test(marker[2]!));
    return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || (this.depth < DEEPEST && (QUOTE.test(line) || isItem));
  }
}

/** The lines inside a block, of which it is known what they end in. */
class Inner {
  readonly lines: string[] = [];
  private fence = "";

  push(line: string): void {
    this.lines.push(line);
    const fence = FENCE.exec(line)?.[1] ?? "";
    if (!this.fence) this.fence = fence;
    else if (fence.startsWith(this.fence)) this.fence = "";
  }

  get isInFence(): boolean {
    return this.fence !== "";
  }

  /** Whether they end in text that can go on: in no code, and in no heading. */
  get endsInText(): boolean {
    const last = this.lines.at(-1) ?? "";
    return !isBlank(last) && !this.fence && !FENCE.test(last) && !HEADING.test(last) && !RULE.test(last);
  }
}

/** A heading's text without the signs that may stand behind it. */
function withoutClosing(written: string): string {
  const text = written.trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end && /[ \t]/.test(text[end - 1]!) ? text.slice(0, end).trimEnd() : text;
}

/** The cells of a table's row. A bar in code, or behind a backslash, parts nothing. */
export function cellsOf(row: string): string[] {
  const cells: string[] = [];
  let cell = "";
  for (const [part] of row.trim().matchAll(/\\\||`+[^`]*`+|\||[^|`\\]+|./gs)) {
    if (part !== "|") cell += part === "\\|" ? "|" : part.startsWith("`") ? part.replaceAll("\\|", "|") : part;
    else {
      cells.push(cell.trim());
      cell = "";
    }
  }
  cells.push(cell.trim());
  if (cells[0] === "" && cells.length > 1) cells.shift();
  if (cells.at(-1) === "" && cells.length > 1) cells.pop();
  return cells;
}
