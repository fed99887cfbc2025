// Keys that work wherever nothing is being typed; with Alt, those that answer questions work everywhere.

import { ANSWER_KEYS, answerKeyAt, keyOf } from "./answer_keys";
import { DIFF_KEYS } from "./diff/keys";
import { isMac } from "./media";
import { questions } from "./model/questions";
import { current, currentId, rows } from "./model/sessions";
import { openNextQuestion, openSession, toComposer, toggleChanges } from "./route";
import { dialog, isHeld } from "./view/dialogs";

export function startKeys(): void {
  const hold = (event: KeyboardEvent) => {
    if (!isHeld(event)) return;
    event.preventDefault();
    event.stopPropagation(); // also from what has the focus: it was not meant
  };
  document.addEventListener("keydown", hold, true);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      dialog.value = dialog.value === "palette" ? null : "palette";
      return;
    }
    if (event.repeat && answerKeyAt(event)) pressedAt = performance.now();
    if (document.querySelector("dialog[open]")) return; // its keys are its own
    if (answersWhileTyping(event)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event.target)) return;
    // So are those of a diff, where letters walk from change to change, from before its lines are drawn.
    if (event.target instanceof HTMLElement && event.target.closest(".diff-body") && event.key in DIFF_KEYS) return;
    const shortcut = SHORTCUTS[keyOf(event)];
    if (!shortcut) return;
    event.preventDefault();
    shortcut();
  });
  if (isMac) document.documentElement.dataset["keyboard"] = "mac"; // for the hints beside the answers
}

/** A key so soon after one that answered, or while that is held down, is no other answer: it was pressed twice. */
const TWICE_MS = 350;
let pressedAt = -Infinity;

const SHORTCUTS: Record<string, () => unknown> = {
  "/": () => focusOn("#search"),
  "?": () => (dialog.value = "help"),
  n: () => (dialog.value = "new"),
  i: toComposer,
  j: () => step(1),
  k: () => step(-1),
  o: () => document.activeElement?.closest(".item")?.querySelector<HTMLElement>("summary, .call-head")?.click(),
  ...Object.fromEntries(ANSWER_KEYS.map(([key]) => [key, () => answer(key)])),
  q: openNextQuestion,
  d: toggleChanges,
  t: () => [...document.querySelectorAll<HTMLElement>(".terminal textarea, .terminal")].at(-1)?.focus(),
  "[": () => neighbour(-1),
  "]": () => neighbour(1),
  Escape: () => current.value?.isBusy.value && current.value.cancel(),
};

/** With Alt the keys of the answers work from the composer too; on a Mac, where Option types "å" or "ą", with Control as well. */
function answersWhileTyping(event: KeyboardEvent): boolean {
  if (!event.altKey || event.metaKey || event.ctrlKey !== (isMac && isTyped(event.target))) return false;
  const key = answerKeyAt(event);
  if (!key || !answer(key)) return false;
  event.preventDefault();
  return true;
}

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

/** The first question that is in sight is the one that is answered. False if it has no such answer. */
function answer(key: string): boolean {
  const card = [...document.querySelectorAll<HTMLElement>(".question")].find(isInSight);
  const button = card?.querySelector<HTMLButtonElement>(`.answer[data-key="${key}"]`);
  const before = questions.peek();
  if (performance.now() - pressedAt > TWICE_MS) button?.click();
  if (questions.peek() !== before) pressedAt = performance.now();
  return !!button;
}

function isInSight(card: HTMLElement): boolean {
  const { top, bottom } = card.getBoundingClientRect();
  return card.checkVisibility({ visibilityProperty: true }) && bottom > 0 && top < innerHeight;
}

function neighbour(by: number): void {
  const at = rows.value.findIndex((row) => row.sessionId === currentId.value);
  const next = rows.value[at + by];
  if (next) openSession(next.sessionId);
}
