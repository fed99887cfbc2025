// The keys of the answers to a permission: the one table of them.

import type { PermissionOption } from "./acp";

type Kind = PermissionOption["kind"];

const ANSWERS: [kind: Kind, key: string, what: string][] = [
  ["allow_once", "a", "allow once"],
  ["reject_once", "r", "reject"],
  ["allow_always", "A", "allow from now on"],
  ["reject_always", "R", "reject from now on"],
];

export const KEY_OF_ANSWER = Object.fromEntries(ANSWERS.map(([kind, key]) => [kind, key])) as Record<Kind, string>;
/** Each key, and what it answers. */
export const ANSWER_KEYS: [key: string, what: string][] = ANSWERS.map(([, key, what]) => [key, what]);

/** The answer's key that was pressed together with Alt: where that types no Latin letter, as on a Mac or in Cyrillic, by its place. */
export function answerKeyAt(event: KeyboardEvent): string | undefined {
  const { code, shiftKey } = event;
  const key = keyOf(LATIN.test(event.key) ? event : { key: code.replace("Key", ""), shiftKey });
  return ANSWER_KEYS.some(([one]) => one === key) ? key : undefined;
}

/** The key with a capital letter only if Shift makes it one: with Caps Lock nobody asks for what is to last. */
export function keyOf({ key, shiftKey }: Pick<KeyboardEvent, "key" | "shiftKey">): string {
  if (!LATIN.test(key)) return key;
  return shiftKey ? key.toUpperCase() : key.toLowerCase();
}

const LATIN = /^[a-z]$/i;
