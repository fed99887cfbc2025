// Shows what changes in files: for each one its path, how much changes, and its lines.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DiffItem, FileDiff } from "../acp";
import { hiddenIn, plainly } from "../hidden";
import { whenNear } from "../near";
import type { DiffViewProps } from "../widgets";
import { DiffBody } from "./body";
import { Counts } from "./counts";
import { countOf, factsOf, type Item, itemOf, lineEnds } from "./model";
import { body } from "./paint";
import { columns, hidesBlanks, setColumns, setHidesBlanks } from "./settings";

/** Pixels from which two columns are the better view. */
const WIDE = 880;

interface ChangedFile {
  path: string;
  items: Item[];
}

type Diffs = readonly (DiffItem | FileDiff)[];

function filesOf(diffs: Diffs): { files: ChangedFile[]; total: number } {
  const files: ChangedFile[] = [];
  let total = 0;
  for (const diff of diffs) {
    const item = itemOf(diff, total);
    total += countOf(item);
    const last = files[files.length - 1];
    if (last?.path === diff.path) last.items.push(item);
    else files.push({ path: diff.path, items: [item] });
  }
  return { files, total };
}

function isSame(one: Diffs, other: Diffs): boolean {
  if (one === other) return true;
  return (
    one.length === other.length &&
    one.every((item, index) => {
      const next = other[index];
      return (
        next?.path === item.path && next.oldText === item.oldText && next.newText === item.newText && factsOf(next)?.changes.length === factsOf(item)?.changes.length
      );
    })
  );
}

export function DiffView({ items, accepted, onAccepted, onComment }: DiffViewProps): JSX.Element {
  const kept = useRef(items);
  if (!isSame(kept.current, items)) kept.current = items; // drawn anew, it would lose what the person opened or writes
  const { files, total } = useMemo(() => filesOf(kept.current), [kept.current]);
  const all = useMemo(() => new Set(Array.from({ length: total }, (_, index) => index)), [total]);
  const chosen = accepted ?? all;
  const toggle = (change: number) => {
    const next = new Set(chosen);
    if (!next.delete(change)) next.add(change);
    onAccepted?.(next);
  };
  return (
    <div class="diffs">
      {onAccepted && total > 1 && (
        <div class="choose">
          <span role="status">
            {chosen.size === total ? `All ${total} changes` : `${chosen.size} of ${total} changes`} will be made
          </span>
          <button type="button" disabled={chosen.size === total} onClick={() => onAccepted(all)}>
            All
          </button>
          <button type="button" disabled={chosen.size === 0} onClick={() => onAccepted(new Set())}>
            None
          </button>
        </div>
      )}
      {files.map((file, index) => (
        <ChangesOfFile
          key={`${index}:${file.path}`}
          file={file}
          total={total}
          accepted={chosen}
          toggle={onAccepted && total > 1 ? toggle : undefined}
          onComment={onComment}
        />
      ))}
    </div>
  );
}

interface FileProps {
  file: ChangedFile;
  total: number;
  accepted: ReadonlySet<number>;
  toggle: ((change: number) => void) | undefined;
  onComment: DiffViewProps["onComment"];
}

function ChangesOfFile({ file, total, accepted, toggle, onComment }: FileProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const drawn = useRef<DiffBody | null>(null);
  const latest = useRef({ toggle, onComment, accepted });
  latest.current = { toggle, onComment, accepted };
  const isWide = useSignal(false);
  const isNear = useSignal(false);
  const isBusy = useSignal(true); // until what is in sight of it is drawn
  const [whole, setWhole] = useState(false);
  const canChoose = toggle !== undefined;
  const beside = columns.value === "two" || (columns.value === "auto" && isWide.value);
  const blanks = hidesBlanks.value && !canChoose; // what is chosen has to be seen
  const rows = useMemo(() => file.items.reduce((sum, item) => sum + item.added + item.removed + 6, 0), [file]);

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const off = whenNear(element, (near) => {
      if (near) isNear.value = true;
      else isBusy.value = false;
    });
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) isWide.value = entry.contentRect.width >= WIDE;
    });
    observer.observe(element);
    return () => {
      off();
      observer.disconnect();
    };
  }, []);
  useEffect(() => {
    const element = host.current;
    if (!element || !isNear.value) return undefined;
    const made = new DiffBody(element, file.items, {
      beside,
      blanks,
      whole,
      onWhole: () => setWhole(true),
      choices: canChoose ? { total, toggle: (change) => latest.current.toggle?.(change) } : undefined,
      comment: onComment && ((line, text, quoted) => latest.current.onComment?.(file.path, line, text, quoted)),
    });
    made.accept(latest.current.accepted);
    drawn.current = made;
    isBusy.value = false;
    return () => made.end();
  }, [file, beside, blanks, whole, canChoose, isNear.value, onComment !== undefined]);
  useEffect(() => drawn.current?.accept(accepted), [accepted]);

  return (
    <section class="diff" aria-label={`Changes in ${plainly(file.path)}`}>
      <Head file={file} beside={beside} canHideBlanks={!canChoose} />
      <Warning file={file} />
      <div
        ref={host}
        class={`diff-body${onComment ? " can-comment" : ""}`}
        tabIndex={0}
        role="group"
        aria-busy={isBusy.value}
        aria-label={`Lines of ${plainly(file.path)}`}
        style={isNear.value ? undefined : { minHeight: `${Math.min(rows, 100) * 20}px` }}
        onKeyDown={(event) => {
          if (drawn.current?.key(event)) {
            event.preventDefault();
            event.stopPropagation();
          }
        }}
        onClick={(event) => drawn.current?.click(event)}
        onFocus={() => (isNear.value = true)}
        onMouseDown={(event) => {
          // So that what is marked with the mouse in one column does not take in the other.
          const code = (event.target as HTMLElement).closest<HTMLElement>("code");
          if (code) event.currentTarget.dataset.marks = code.dataset.side ?? "";
        }}
      />
    </section>
  );
}

function Head({ file, beside, canHideBlanks }: { file: ChangedFile; beside: boolean; canHideBlanks: boolean }): JSX.Element {
  const added = file.items.reduce((sum, item) => sum + item.added, 0);
  const removed = file.items.reduce((sum, item) => sum + item.removed, 0);
  const path = plainly(file.path);
  const cut = path.lastIndexOf("/") + 1;
  const first = file.items[0];
  const ends = first ? lineEnds(first) : "LF";
  return (
    <header class="diff-head">
      <span class="diff-path" title={path}>
        <span class="dir">
          <bdi>{path.slice(0, cut)}</bdi>
        </span>
        <b>{path.slice(cut)}</b>
      </span>
      {first?.isNew && <span class="chip added">new</span>}
      {first?.isGone && <span class="chip removed">deleted</span>}
      {first && !first.isGone && !first.isNew && first.new.length === 0 && <span class="chip removed">empty now</span>}
      {ends !== "LF" && <span class="chip">{ends === "CRLF" ? "CRLF" : "mixed line ends"}</span>}
      <Counts added={added} removed={removed} />
      <span class="diff-tools">
        {canHideBlanks && (
          <button
            type="button"
            class="tool"
            aria-pressed={hidesBlanks.value}
            title="Leave out changes of blanks"
            aria-label="Leave out changes of blanks"
            onClick={() => setHidesBlanks(!hidesBlanks.value)}
          >
            ␣
          </button>
        )}
        <button
          type="button"
          class="tool columns"
          aria-pressed={beside}
          title="Side by side"
          aria-label="Side by side"
          onClick={() => setColumns(beside ? "one" : "two")}
        >
          ◫
        </button>
      </span>
    </header>
  );
}

/** A sentence where the new lines hold characters that nobody sees. */
function Warning({ file }: { file: ChangedFile }): JSX.Element | null {
  const hides = useMemo(() => file.items.some(addsHidden), [file]);
  return hides ? (
    <p class="diff-warning" role="note">
      The new lines hold characters that cannot be seen or that change the order of reading. They are shown like{" "}
      <span class="hid">⟨U+202E⟩</span>.
    </p>
  ) : null;
}

function addsHidden(item: Item): boolean {
  return item.parts.some((part) => {
    if (part.same) return false;
    for (let at = part.newAt; at < part.newAt + part.newCount; at += 1) {
      if (hiddenIn(body(item.new[at] ?? "")).length) return true;
    }
    return false;
  });
}
