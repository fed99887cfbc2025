// What a diff consists of: the lines of both sides, the changed places between them, and the parts that are drawn.

import type { Change, DiffItem, FileDiff } from "../acp";

/** Lines that are the same on both sides, or a changed place. Offsets are lines of the item. */
export interface Part {
  same: boolean;
  oldAt: number;
  oldCount: number;
  newAt: number;
  newCount: number;
  /** Index of the first change in it, over all items. */
  change: number;
}

export interface Item {
  path: string;
  old: string[];
  new: string[];
  oldLine: number;
  newLine: number;
  parts: Part[];
  isNew: boolean;
  isGone: boolean;
  added: number;
  removed: number;
}

/** Lines with their ends, as Crow counts them: only a line feed ends one. */
function linesOf(text: string): string[] {
  const lines: string[] = [];
  let at = 0;
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", at)) {
    lines.push(text.slice(at, end + 1));
    at = end + 1;
  }
  if (at < text.length) lines.push(text.slice(at));
  return lines;
}

/** How many lines or words are the same at the beginning of both, and how many of the rest at their end. */
export function commonEnds(old: readonly string[], now: readonly string[]): [start: number, end: number] {
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < most - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  return [start, end];
}

/** For an item that came without changes: one change between the common beginning and the common end. */
function trimmed(old: string[], now: string[]): Change[] {
  const [start, end] = commonEnds(old, now);
  const change: Change = [start, old.length - start - end, start, now.length - start - end];
  return change[1] || change[3] ? [change] : [];
}

/** Whether what came is a list of changes that fits the texts: whatever else is drawn would be a lie. */
function fits(changes: readonly Change[], old: number, now: number): boolean {
  let oldAt = 0;
  let newAt = 0;
  for (const change of changes) {
    if (!Array.isArray(change) || change.length !== 4 || !change.every((n) => Number.isInteger(n) && n >= 0)) return false;
    if (change[0] < oldAt || change[0] - oldAt !== change[2] - newAt) return false;
    oldAt = change[0] + change[1];
    newAt = change[2] + change[3];
  }
  return old - oldAt === now - newAt && oldAt <= old;
}

/** What Crow told of an item's changes: in a tool call under `_meta`, elsewhere beside the texts. */
export function factsOf(item: DiffItem | FileDiff) {
  return "type" in item ? item._meta?.crow?.diff : item.diff;
}

/** The item with its parts. `first` is the index of its first change over all items. */
export function itemOf(item: DiffItem | FileDiff, first: number): Item {
  const old = linesOf(item.oldText ?? "");
  const now = linesOf(item.newText ?? "");
  const told = factsOf(item);
  const changes = told && fits(told.changes, old.length, now.length) ? told.changes : trimmed(old, now);
  const parts: Part[] = [];
  let oldAt = 0;
  let newAt = 0;
  let added = 0;
  let removed = 0;
  const same = (count: number) => {
    if (count > 0) parts.push({ same: true, oldAt, oldCount: count, newAt, newCount: count, change: -1 });
    oldAt += count;
    newAt += count;
  };
  changes.forEach(([start, oldCount, newStart, newCount], index) => {
    same(start - oldAt);
    parts.push({ same: false, oldAt: start, oldCount, newAt: newStart, newCount, change: first + index });
    oldAt = start + oldCount;
    newAt = newStart + newCount;
    added += newCount;
    removed += oldCount;
  });
  same(old.length - oldAt);
  return {
    path: item.path,
    old,
    new: now,
    oldLine: told?.oldLine ?? 1,
    newLine: told?.newLine ?? 1,
    parts,
    isNew: item.oldText == null,
    isGone: item.newText == null,
    added,
    removed,
  };
}

/** How many changes an item has. */
export function countOf(item: Item): number {
  return item.parts.reduce((sum, part) => sum + (part.same ? 0 : 1), 0);
}

/** Which line ends an item has. "mixed": those on both sides together are not the same. */
export function lineEnds(item: Item): "LF" | "CRLF" | "mixed" {
  let crlf = 0;
  let lf = 0;
  for (const side of [item.old, item.new]) {
    for (const line of side) {
      if (line.endsWith("\r\n")) crlf += 1;
      else if (line.endsWith("\n")) lf += 1;
    }
  }
  return crlf === 0 ? "LF" : lf === 0 ? "CRLF" : "mixed";
}

const bare = (line: string | undefined) => (line ?? "").replace(/\s+/g, "");

/** The parts without changes of blanks alone: lines that differ only in blanks count as the same. */
export function withoutBlanks(item: Item): Part[] {
  const parts: Part[] = [];
  for (const part of item.parts.flatMap((one) => (one.same ? [one] : split(item, one)))) {
    const last = parts[parts.length - 1];
    if (!last?.same || !part.same) parts.push({ ...part });
    else {
      last.oldCount += part.oldCount;
      last.newCount += part.newCount;
    }
  }
  return parts;
}

/** A changed place without the lines at its beginning and end that differ only in blanks. */
function split(item: Item, part: Part): Part[] {
  const old = item.old.slice(part.oldAt, part.oldAt + part.oldCount).map(bare);
  const now = item.new.slice(part.newAt, part.newAt + part.newCount).map(bare);
  const [start, end] = commonEnds(old, now);
  const make = (same: boolean, at: number, oldCount: number, newAt: number, newCount: number): Part[] =>
    oldCount + newCount === 0
      ? []
      : [{ same, oldAt: part.oldAt + at, oldCount, newAt: part.newAt + newAt, newCount, change: same ? -1 : part.change }];
  const oldLeft = old.length - start - end;
  const newLeft = now.length - start - end;
  const blank = [...old.slice(start, start + oldLeft), ...now.slice(start, start + newLeft)].every((line) => !line);
  return [
    ...make(true, 0, start, 0, start),
    // Empty lines that came or went are a change of blanks too, unless they are all there is to see.
    ...(blank && oldLeft === newLeft ? make(true, start, oldLeft, start, newLeft) : make(false, start, oldLeft, start, newLeft)),
    ...make(true, start + oldLeft, end, start + newLeft, end),
  ];
}

// --- what is drawn

/** A row: an offset in the old text, in the new text, or in both. A pair in two columns need not be the same line. */
export interface Row {
  old: number;
  new: number;
  kind: "same" | "del" | "add" | "pair";
}

export type Side = "old" | "new";

/** A slice of the rows of one part. */
export interface Slice {
  kind: "rows";
  item: number;
  change: number;
  isFirst: boolean;
  at: number;
  count: number;
  part: Part;
}

export type Piece =
  | Slice
  | { kind: "fold"; item: number; part: Part; at: number; count: number }
  | { kind: "gap"; item: number };

const CONTEXT = 3;
const SLICE = 100;
/** Unchanged lines that are worth a fold. */
const FEW = 4;

/** Rows of one part, one below the other or side by side. */
function rowCount(part: Part, beside: boolean): number {
  if (part.same) return part.oldCount;
  return beside ? Math.max(part.oldCount, part.newCount) : part.oldCount + part.newCount;
}

export function rowAt(part: Part, index: number, beside: boolean): Row {
  if (part.same) return { old: part.oldAt + index, new: part.newAt + index, kind: "same" };
  if (beside) {
    const old = index < part.oldCount ? part.oldAt + index : -1;
    const now = index < part.newCount ? part.newAt + index : -1;
    return { old, new: now, kind: "pair" };
  }
  return index < part.oldCount
    ? { old: part.oldAt + index, new: -1, kind: "del" }
    : { old: -1, new: part.newAt + index - part.oldCount, kind: "add" };
}

/** The pieces of an item in order: slices of rows, and folds in the place of long unchanged parts. */
export function piecesOf(item: number, parts: readonly Part[], beside: boolean): Piece[] {
  const pieces: Piece[] = item > 0 ? [{ kind: "gap", item }] : [];
  parts.forEach((part, index) => {
    if (!part.same) {
      pieces.push(...slices(item, part, 0, rowCount(part, beside), part.change));
      return;
    }
    const before = index === 0 ? 0 : CONTEXT;
    const after = index === parts.length - 1 ? 0 : CONTEXT;
    const folded = part.oldCount - before - after;
    if (folded < FEW) {
      pieces.push(...slices(item, part, 0, part.oldCount, -1));
      return;
    }
    if (before) pieces.push(...slices(item, part, 0, before, -1));
    pieces.push({ kind: "fold", item, part, at: before, count: folded });
    if (after) pieces.push(...slices(item, part, before + folded, after, -1));
  });
  return pieces;
}

export function slices(item: number, part: Part, at: number, count: number, change: number): Piece[] {
  const pieces: Piece[] = [];
  for (let start = at; start < at + count; start += SLICE) {
    const length = Math.min(SLICE, at + count - start);
    pieces.push({ kind: "rows", item, change, isFirst: start === at && change >= 0, at: start, count: length, part });
  }
  return pieces;
}
