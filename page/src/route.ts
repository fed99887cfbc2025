// Which session is shown, as the address says it: `#/s/ID`. An address shows things and never starts work.

import { signal } from "@preact/signals";
import type { SessionId, SessionInfo } from "./acp";
import { crow } from "./connection";
import { isNarrow } from "./media";
import { questions } from "./model/questions";
import { currentId, rows, show } from "./model/sessions";
import { takeLink } from "./token";

export type Tab = "talk" | "changes" | "questions";
/** On a phone one of these is seen at a time. */
export const tab = signal<Tab>("talk");
/** Whether the changed files are shown beside the talk. */
export const showsChanges = signal(false);

export function toggleChanges(): void {
  const isSeen = isNarrow.matches ? tab.value === "changes" : showsChanges.value;
  showsChanges.value = !isSeen;
  tab.value = isSeen ? "talk" : "changes";
}

/** To where the person writes. A dialog that is being closed gives the focus back first. */
export function toComposer(): void {
  tab.value = "talk";
  requestAnimationFrame(() => document.getElementById("composer")?.focus());
}

export function openSession(id: SessionId | null, info?: SessionInfo): void {
  tab.value = "talk";
  const hash = addressOf(id);
  if (location.hash !== hash || tabInHistory() !== "talk") history.pushState(null, "", hash);
  show(id, info);
}

/** Shows one of the phone's views; the phone's Back leads to the one before. */
export function openTab(name: Tab): void {
  if (tab.value !== name) history.pushState({ tab: name }, "");
  tab.value = name;
}

function tabInHistory(): Tab {
  return (history.state as { tab?: Tab } | null)?.tab ?? "talk";
}

function addressOf(id: SessionId | null): string {
  return id ? `#/s/${encodeURIComponent(id)}` : "#/";
}

/** Opens a session in which something is asked: another one than the one that is shown, if there is one. */
export function openNextQuestion(): void {
  const other = questions.value.find((one) => one.sessionId !== currentId.value) ?? questions.value[0];
  const asking = other?.sessionId ?? rows.value.find((row) => row.state === "asks")?.sessionId;
  if (asking) openSession(asking);
}

export function startRoute(): void {
  const follow = () => {
    // Who is asked for a link may paste one into this tab: only the fragment changes then, and nothing is loaded.
    if (takeLink(!crow.isUsable)) {
      history.replaceState(null, "", addressOf(currentId.value));
      return crow.wake();
    }
    tab.value = tabInHistory();
    show(sessionAt(location.hash));
  };
  addEventListener("popstate", follow);
  follow();
}

/** The session that an address names; nothing if it names none, or is none. */
function sessionAt(hash: string): SessionId | null {
  try {
    return decodeURIComponent(/^#\/s\/([^/]+)$/.exec(hash)?.[1] ?? "") || null;
  } catch {
    return null; // a percent sign that stands for nothing
  }
}
