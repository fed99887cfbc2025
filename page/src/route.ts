// Which session is shown, as the address says it: `#/s/ID`. An address shows things and never starts work.

import { signal } from "@preact/signals";
import type { SessionId } from "./acp";
import { show } from "./model/sessions";

export type Tab = "talk" | "changes" | "questions";
/** On a phone one of these is seen at a time. */
export const tab = signal<Tab>("talk");
/** Whether the changed files are shown beside the talk. */
export const hasChanges = signal(false);

export function openSession(id: SessionId | null): void {
  tab.value = "talk";
  const hash = id ? `#/s/${encodeURIComponent(id)}` : "#/";
  if (location.hash !== hash) history.pushState(null, "", hash);
  show(id);
}

export function startRoute(): void {
  const follow = () => {
    const found = /^#\/s\/([^/]+)$/.exec(location.hash);
    show(found?.[1] ? decodeURIComponent(found[1]) : null);
  };
  addEventListener("popstate", follow);
  follow();
}
