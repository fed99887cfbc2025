// The keys that a diff has for itself while the focus is in it, and what each does there. In a file of its own, as the page needs to know
// them before it has fetched a diff.

export type DiffDeed = "next change" | "change before" | "comment" | "toggle";

export const DIFF_KEYS: Readonly<Record<string, DiffDeed>> = {
  n: "next change",
  p: "change before",
  c: "comment",
  x: "toggle",
};
