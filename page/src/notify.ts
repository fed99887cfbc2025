// Tells the person who looks elsewhere: a count in the title, and a notification when something is asked or done.

import { effect, signal } from "@preact/signals";
import { questions } from "./model/questions";
import { asksInAll, current, doneInAll, rows } from "./model/sessions";
import { recall, remember } from "./storage";

export const canNotify = "Notification" in globalThis && isSecureContext;
export const notifies = signal<boolean>(canNotify && recall<boolean>("notify", false) && Notification.permission === "granted");

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
  onIncrease(() => Math.max(asksInAll.value, questions.value.length), () => {
    const asking = rows.peek().find((row) => row.state === "asks");
    tell("Crow asks", asking?.title || "A question is open.");
  });
  onIncrease(() => doneInAll.value, () => {
    const done = rows.peek().find((row) => row.state === "done");
    tell("Crow is done", done?.title || "");
  });
}

function onIncrease(count: () => number, then: () => void): void {
  let before = Infinity; // what was there when the page was opened is no news
  effect(() => {
    const now = count();
    if (now > before) then();
    before = now;
  });
}

function tell(title: string, body: string): void {
  if (!notifies.peek() || document.visibilityState === "visible") return;
  const notification = new Notification(title, { body, icon: "/crow.svg", tag: title });
  notification.onclick = () => {
    focus();
    notification.close();
  };
}
