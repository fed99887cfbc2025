// Tells the person who looks elsewhere: a count in the title, and a notification when something is asked or done.

import { effect, signal } from "@preact/signals";
import type { SessionId } from "./acp";
import { questions } from "./model/questions";
import { asksInAll, current, isListed, rows, type Row } from "./model/sessions";
import { openSession } from "./route";
import { recall, remember } from "./storage";

export const canNotify = signal("Notification" in globalThis && isSecureContext);
export const notifies = signal<boolean>(canNotify.value && recall<boolean>("notify", false) && Notification.permission === "granted");

/** Has to follow a click: browsers ask the person only then. */
export async function toggleNotify(): Promise<void> {
  notifies.value = !notifies.value && (await Notification.requestPermission()) === "granted";
  remember("notify", notifies.value);
}

export function startNotify(): void {
  effect(() => {
    const count = Math.max(asksInAll.value, questions.value.length);
    const name = current.value?.title.value;
    document.title = `${count ? `(${count}) ` : ""}${name ? `${name} · ` : ""}Crow`;
  });
  let before: Map<SessionId, string> | null = null; // what was there when the page was opened is no news
  effect(() => {
    const now = new Map(rows.value.map((row) => [row.sessionId, row.state]));
    const isNews = (row: Row) => before !== null && before.get(row.sessionId) !== row.state;
    for (const row of rows.value.filter(isNews)) {
      if (row.state === "asks") tell("Crow is waiting for you", row);
      else if (row.state === "done") tell("Crow is done", row);
    }
    if (isListed.value) before = now;
  });
}

/** One notification for each session: the newest takes the place of the one before. */
function tell(title: string, { sessionId, title: body }: Row): void {
  if (!notifies.peek() || document.visibilityState === "visible") return;
  let notification: Notification;
  try {
    notification = new Notification(title, { body: body || "Untitled", icon: "/crow.svg", tag: sessionId });
  } catch {
    // Chrome on Android has the constructor, and lets nobody call it but a service worker.
    canNotify.value = notifies.value = false;
    return;
  }
  notification.onclick = () => {
    focus();
    openSession(sessionId);
    notification.close();
  };
}
