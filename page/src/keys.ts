// Keys that work wherever nothing is being typed.

import { current, currentId, rows } from "./model/sessions";
import { hasChanges, openNextQuestion, openSession, tab } from "./route";
import { dialog } from "./view/dialogs";

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      dialog.value = dialog.value === "palette" ? null : "palette";
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event.target)) return;
    if (document.querySelector("dialog[open]")) return; // its keys are its own
    // So are those of a diff, where letters walk from change to change, from before its lines are drawn.
    if (event.target instanceof HTMLElement && event.target.closest(".diff-body") && event.key in DIFF_KEYS) return;
    const deed = DEEDS[event.key];
    if (!deed) return;
    event.preventDefault();
    deed();
  });
}

const DIFF_KEYS = { n: 1, p: 1, c: 1 };

const DEEDS: Record<string, () => void> = {
  "/": () => focusOn("#search"),
  "?": () => (dialog.value = "help"),
  n: () => (dialog.value = "new"),
  i: () => focusOn("#composer"),
  j: () => step(1),
  k: () => step(-1),
  o: () => document.activeElement?.closest(".item")?.querySelector<HTMLElement>("summary, .call-head")?.click(),
  a: () => answer("a"),
  A: () => answer("A"),
  r: () => answer("r"),
  R: () => answer("R"),
  q: openNextQuestion,
  d: () => {
    hasChanges.value = !hasChanges.value;
    tab.value = hasChanges.value ? "changes" : "talk";
  },
  t: () => [...document.querySelectorAll<HTMLElement>(".terminal textarea, .terminal")].at(-1)?.focus(),
  "[": () => neighbour(-1),
  "]": () => neighbour(1),
  Escape: () => current.value?.isBusy.value && current.value.cancel(),
};

/** Whether a key belongs to what has the focus. */
function isTyped(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusOn(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
}

function step(by: number): void {
  const items = [...document.querySelectorAll<HTMLElement>(".transcript .item")];
  const at = items.findIndex((item) => item.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by;
  const item = items[Math.max(0, Math.min(items.length - 1, next))];
  item?.focus({ preventScroll: true });
  item?.scrollIntoView({ block: "nearest" });
}

/** The first question that is in sight is the one that is answered. */
function answer(key: string): void {
  document.querySelector<HTMLButtonElement>(`.question .answer[data-key="${key}"]`)?.click();
}

function neighbour(by: number): void {
  const at = rows.value.findIndex((row) => row.sessionId === currentId.value);
  const next = rows.value[at + by];
  if (next) openSession(next.sessionId);
}
