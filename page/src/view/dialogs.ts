// Which dialog is open; at most one is. What is typed before it is there goes into it.

import { signal } from "@preact/signals";

export type DialogName = "new" | "palette" | "help";
export const dialog = signal<DialogName | null>(null);

/** Keys that were pressed while a dialog was still being fetched, or had not got all that were pressed before. */
let held: string[] = [];
let isGiving = false;
dialog.subscribe(() => (held = [])); // they were meant for the one that was asked for before

/** What a dialog takes; the browser's own keys, such as the one that loads the page again, stay its own. */
const TAKEN = /^(.|Enter|Backspace|Arrow(Up|Down))$/u;

/** Whether a key is for a dialog that was asked for and is still being fetched: it must not do anything else. */
export function isHeld(event: KeyboardEvent): boolean {
  const part = document.querySelector('.app > [aria-busy="true"]');
  if (!event.isTrusted || !(part || isGiving)) return false;
  if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return false;
  if (event.target instanceof Element && event.target.closest('[aria-busy="true"]')) return false; // it cannot be fetched, and says so
  if (event.key === "Escape") {
    dialog.value = null;
    return true;
  }
  if (part?.querySelector('[role="alert"]') || !TAKEN.test(event.key)) return false; // what cannot be fetched takes nothing
  held.push(event.key);
  return true;
}

/** A dialog is there: it is given what was typed meanwhile. */
export async function giveHeldKeys(): Promise<void> {
  isGiving = true;
  for (let key = held.shift(); key; key = held.shift()) {
    const field = document.activeElement;
    if (!(field instanceof HTMLInputElement) || !field.closest("dialog")) continue;
    if (key.length === 1 || key === "Backspace") {
      field.value = key.length === 1 ? field.value + key : field.value.slice(0, -1);
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    } else if (field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })) && key === "Enter") {
      field.form?.requestSubmit();
    }
    await new Promise((resolve) => setTimeout(resolve)); // until it is drawn
  }
  isGiving = false;
}
