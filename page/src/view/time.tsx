// Times, as people say them.

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

const everySecond = ticking(1000);
const everyMinute = ticking(60_000);

/** Counts up in each interval in which the page is seen, while something shows a time that passes: else no timer runs. */
function ticking(ms: number): ReadonlySignal<number> {
  let timer: ReturnType<typeof setInterval> | undefined;
  const stop = () => clearInterval(timer);
  const start = () => {
    stop();
    if (document.visibilityState === "visible") timer = setInterval(() => ticks.value++, ms);
  };
  const looked = () => {
    ticks.value++;
    start();
  };
  const ticks = signal(0, {
    watched: () => {
      start();
      document.addEventListener("visibilitychange", looked);
    },
    unwatched: () => {
      stop();
      document.removeEventListener("visibilitychange", looked);
    },
  });
  return ticks;
}

/** A duration: "0.4 s", "12 s", "3 min 5 s", "1 h 2 min". */
export function duration(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** How long ago something was, in one unit. What shows it is drawn anew only when that is another one. */
export function Ago({ iso }: { iso: string | null | undefined }): JSX.Element {
  const words = useMemo(() => computed(() => (void everyMinute.value, ago(iso, Date.now()))), [iso]);
  return <>{words}</>;
}

function ago(iso: string | null | undefined, now: number): string {
  const then = iso ? Date.parse(iso) : NaN;
  if (Number.isNaN(then)) return "";
  const seconds = Math.max(0, (now - then) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86400) return `${Math.floor(seconds / 86400)} d`;
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** The time since a moment, counted while it is looked at. */
export function Elapsed({ since }: { since: number }): JSX.Element {
  void everySecond.value;
  const seconds = Math.max(0, Math.floor((Date.now() - since) / 1000));
  return <span class="elapsed">{seconds < 1 ? "" : seconds < 60 ? `${seconds} s` : duration(seconds)}</span>;
}
