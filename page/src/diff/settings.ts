// How diffs are drawn, in all of them at once; remembered by this browser.

import { signal } from "@preact/signals";

export type Columns = "auto" | "one" | "two";

function remembered(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // storage may be forbidden
  }
}

function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // then only for as long as the page is open
  }
}

const COLUMNS = "crow.diff.columns";
const BLANKS = "crow.diff.blanks";
const told = remembered(COLUMNS);

export const columns = signal<Columns>(told === "one" || told === "two" ? told : "auto");
/** Whether changes of blanks alone are left out. */
export const withoutBlanks = signal(remembered(BLANKS) === "hidden");

export function setColumns(value: Columns): void {
  columns.value = value;
  remember(COLUMNS, value);
}

export function setWithoutBlanks(value: boolean): void {
  withoutBlanks.value = value;
  remember(BLANKS, value ? "hidden" : "shown");
}
