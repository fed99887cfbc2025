// Draws blocks of Markdown as nodes of the page, and brings what is drawn up to date: what has not changed stays the same node, and a
// text that has only grown stays the same text, so that what a person has selected in it stays selected.

import { highlight } from "../widgets";
import { type Block, cellsOf, type Code, type List, type ListItem, type Table } from "./blocks";
import { inlineInto } from "./inline";
import { appendText } from "./open_code";

/** Blocks of code that are longer stay plain: colouring them would hold up the page. */
const LONGEST_CODE = 50_000;

/** A node of the page, what it was drawn from, and what was drawn in it. */
export interface Drawn {
  what: { raw: string; is?: string };
  node: HTMLElement;
  inner: Drawn[];
}

type Draw<T> = (what: T, before: Drawn | undefined) => Drawn;

/** Brings what was drawn at the end of `parent` up to date: what has not changed stays the same node. */
export function redraw<T extends Drawn["what"]>(parent: HTMLElement, before: Drawn[], news: readonly T[], draw: Draw<T>): Drawn[] {
  const drawn = news.map((what, index) => {
    const known = before[index];
    if (known && known.what.raw === what.raw && known.what.is === what.is) {
      known.what = what;
      return known;
    }
    const made = draw(what, known);
    if (!known) parent.append(made.node);
    else if (known.node !== made.node) known.node.replaceWith(made.node);
    return made;
  });
  for (const { node } of before.slice(news.length)) node.remove();
  return drawn;
}

export function drawBlock(block: Block, before: Drawn | undefined): Drawn {
  const same = before?.what.is === block.is ? before : undefined;
  switch (block.is) {
    case "code":
      return drawCode(block, same);
    case "ul":
    case "ol":
      return drawList(block, same);
    case "blockquote": {
      const node = same?.node ?? document.createElement("blockquote");
      turn(node, block.raw);
      return { what: block, node, inner: redraw(node, same?.inner ?? [], block.blocks, drawBlock) };
    }
    case "table":
      return drawTable(block, same);
    case "hr":
      return { what: block, node: document.createElement("hr"), inner: [] };
    default:
      return { what: block, node: grown(same?.node, inline(block.is, block.text)), inner: [] };
  }
}

/** Has a block that holds others read from the side from which its first letter is. (`auto` looks for a letter in all of its
 * items at each change, and finds none: they have a `dir` of their own.) */
function turn(node: HTMLElement, raw: string): void {
  const letter = /\p{L}/u.exec(raw)?.[0];
  if (letter) node.dir ||= /[\u0590-\u08ff\ufb1d-\ufefc]/.test(letter) ? "rtl" : "ltr";
}

function inline(name: string, text: string): HTMLElement {
  const node = document.createElement(name);
  inlineInto(node, text);
  node.dir = "auto"; // now that it is filled: the browser looks at the whole again with each change
  return node;
}

/** What was drawn before, made equal to what is drawn now; or the latter, if there was nothing of its kind. */
function grown(before: HTMLElement | undefined, now: HTMLElement): HTMLElement {
  if (!before || !before.cloneNode().isEqualNode(now.cloneNode())) return now;
  const { dir } = now;
  for (const node of [before, now]) node.removeAttribute("dir"); // until all is moved
  let old = before.firstChild;
  for (const node of [...now.childNodes]) {
    const next: ChildNode | null = old?.nextSibling ?? null;
    if (!old) before.append(node);
    else if (old instanceof Text && node instanceof Text) {
      const [was, is] = [old.data, node.data];
      let same = is.startsWith(was) ? was.length : 0;
      while (same < was.length && was[same] === is[same]) same += 1;
      old.replaceData(same, was.length, is.slice(same));
    } else if (!old.isEqualNode(node)) {
      const isKept = old instanceof HTMLElement && node instanceof HTMLElement && grown(old, node) === old;
      if (!isKept) old.replaceWith(node);
    }
    old = next;
  }
  while (old && before.lastChild !== old) before.lastChild!.remove();
  old?.remove();
  if (dir) before.dir = dir;
  return before;
}

function drawCode(block: Code, same: Drawn | undefined): Drawn {
  const known = same?.what as Code | undefined;
  const node = same?.node ?? document.createElement("pre");
  const code = (node.firstElementChild as HTMLElement | null) ?? node.appendChild(document.createElement("code"));
  node.tabIndex = 0; // so that keys can scroll it
  const text = code.textContent ?? "";
  if (!code.childElementCount && block.text.startsWith(text)) appendText(code, block.text.slice(text.length));
  else code.textContent = block.text;
  if (!block.isClosed) delete code.dataset.language; // what seemed to be its end was none
  else if (!known?.isClosed) colour(node, block);
  return { what: block, node, inner: [] };
}

export function colour(node: HTMLElement, { language, text }: Code): void {
  const code = node.firstElementChild as HTMLElement;
  if (!language || text.length >= LONGEST_CODE || code.dataset.language) return;
  code.dataset.language = language.slice(0, 40);
  highlight(code, code.dataset.language);
}

function drawList(block: List, same: Drawn | undefined): Drawn {
  const node = same?.node ?? document.createElement(block.is);
  turn(node, block.items[0]!.raw);
  if (block.isLoose) node.className = "is-loose";
  else node.removeAttribute("class");
  // Only now: of a long list the first items are not read again.
  if (!same && block.is === "ol" && block.start !== 1) node.setAttribute("start", String(block.start));
  return { what: block, node, inner: redraw(node, same?.inner ?? [], block.items, drawItem) };
}

function drawItem(item: ListItem, before: Drawn | undefined): Drawn {
  const isSame = before !== undefined && (before.what as ListItem).isDone === item.isDone;
  const node = isSame ? before.node : document.createElement("li");
  if (!isSame && item.isDone !== undefined) {
    const box = { type: "checkbox", checked: item.isDone, disabled: true, ariaLabel: "Task" };
    node.className = "task";
    node.append(Object.assign(document.createElement("input"), box), " ");
  }
  return { what: item, node, inner: redraw(node, isSame ? before.inner : [], item.blocks, drawBlock) };
}

function drawTable(block: Table, same: Drawn | undefined): Drawn {
  const width = block.aligned.length;
  const before = same?.what as Table | undefined;
  const known = before?.head === block.head && String(before.aligned) === String(block.aligned) ? same : undefined;
  const node = known?.node ?? document.createElement("div");
  const body = node.querySelector("tbody") ?? document.createElement("tbody");
  if (!known) {
    Object.assign(node, { className: "table", role: "group", ariaLabel: "Table" });
    node.tabIndex = 0; // so that keys can scroll it
    const head = document.createElement("thead");
    head.append(row(block.head, width, block.aligned, "th"));
    const table = document.createElement("table");
    table.append(head, body);
    node.append(table);
  }
  const rows = block.rows.map((raw) => ({ raw }));
  const draw = ({ raw }: { raw: string }, before: Drawn | undefined): Drawn => ({
    what: { raw },
    node: grown(before?.node, row(raw, width, block.aligned, "td")),
    inner: [],
  });
  return { what: block, node, inner: redraw(body, known?.inner ?? [], rows, draw) };
}

function row(text: string, width: number, aligned: readonly string[], name: string): HTMLElement {
  const cells = cellsOf(text);
  const shown = cells.length > width ? [...cells.slice(0, width - 1), cells.slice(width - 1).join(" | ")] : cells;
  const node = document.createElement("tr");
  for (let at = 0; at < width; at += 1) {
    const cell = inline(name, shown[at] ?? "");
    if (aligned[at]) cell.className = `is-${aligned[at]}`;
    node.append(cell);
  }
  return node;
}
