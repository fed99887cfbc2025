// How diffs are drawn, in all of them at once; remembered by this browser.

import { signal } from "@preact/signals";
import { recall, remember } from "../storage";

export type Columns = "auto" | "one" | "two";

export const columns = signal(recall<Columns>("diff.columns", "auto"));
/** Whether changes of blanks alone are left out. */
export const hidesBlanks = signal(recall("diff.hidesBlanks", false));

export function setColumns(value: Columns): void {
  columns.value = value;
  remember("diff.columns", value);
}

export function setHidesBlanks(value: boolean): void {
  hidesBlanks.value = value;
  remember("diff.hidesBlanks", value);
}
