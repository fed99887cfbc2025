// How many lines a change adds and removes, as a person sees it and as it is read aloud.

import type { JSX } from "preact";

export function Counts({ added, removed }: { added: number; removed: number }): JSX.Element {
  return (
    <span class="counts" role="img" aria-label={`${added} lines added, ${removed} removed`}>
      {added > 0 && <span class="plus">+{added.toLocaleString("en")}</span>}
      {removed > 0 && <span class="minus">−{removed.toLocaleString("en")}</span>}
    </span>
  );
}
