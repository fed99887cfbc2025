// Which session is shown, as the address says it: `#/s/ID`. An address shows things and never starts work.

import { signal } from "@preact/signals";
import type { SessionId } from "./acp";
import { questions } from "./model/questions";
import { currentId, rows, show } from "./model/sessions";

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

/** Opens a session in which something is asked: another one than the one that is shown, if there is one. */
export function openNextQuestion(): void {
  const other = questions.value.find((one) => one.sessionId !== currentId.value) ?? questions.value[0];
  const asking = other?.sessionId ?? rows.value.find((row) => row.state === "asks")?.sessionId;
  if (asking) openSession(asking);
}

export function startRoute(): void {
  const follow = () => {
    const found = /^#\/s\/([^/]+)$/.exec(location.hash);
    show(found?.[1] ? decodeURIComponent(found[1]) : null);
  };
  addEventListener("popstate", follow);
  follow();
}
