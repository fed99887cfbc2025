// Which dialog is open; at most one is.

import { signal } from "@preact/signals";

export type DialogName = "new" | "palette" | "help";
export const dialog = signal<DialogName | null>(null);
