// Times, as people say them.

import { signal } from "@preact/signals";
import type { JSX } from "preact";

/** Now, in ms, once a second: whatever shows a time that passes reads this. */
export const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") now.value = Date.now();
}, 1000);

/** A duration: "0.4 s", "12 s", "3 min 5 s", "1 h 2 min". */
export function duration(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** How long ago something was, in one unit. */
export function ago(iso: string | null | undefined): string {
  const then = iso ? Date.parse(iso) : NaN;
  if (Number.isNaN(then)) return "";
  const seconds = Math.max(0, (now.value - then) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86400) return `${Math.floor(seconds / 86400)} d`;
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** The time since a moment, counted while it is looked at. */
export function Elapsed({ since }: { since: number }): JSX.Element {
  const seconds = Math.max(0, Math.floor((now.value - since) / 1000));
  return <span class="elapsed">{seconds < 1 ? "" : seconds < 60 ? `${seconds} s` : duration(seconds)}</span>;
}
