// The model's plan, pinned above the composer: the step at work in one line, all of them when it is opened.

import type { JSX } from "preact";
import type { PlanEntry } from "../acp";
import type { Session } from "../model/session";
import { Icon } from "./icons";

const MARKS = { completed: "✓", in_progress: "▸", pending: "○" } as const;
const WORDS = { completed: "done", in_progress: "at work", pending: "to do" } as const;

export function Plan({ session }: { session: Session }): JSX.Element {
  const entries = session.plan.value;
  const done = entries.filter((entry) => entry.status === "completed").length;
  if (!entries.length || (done === entries.length && !session.isBusy.value)) return <></>;
  const next = entries.find((entry) => entry.status === "in_progress") ?? entries.find((entry) => entry.status === "pending");
  return (
    <details class="plan" onToggle={showStep}>
      <summary>
        <Icon name="pin" />
        <span class="plan-count">
          {done} of {entries.length}
        </span>
        <span class="cut">{next?.content ?? "Plan"}</span>
        <progress max={entries.length} value={done} aria-label="Plan" />
      </summary>
      <ol tabIndex={0} aria-label="Steps">
        {entries.map((entry, index) => (
          <Step key={index} entry={entry} />
        ))}
      </ol>
    </details>
  );
}

/** Of a long plan, opened, the step at work is in sight. */
function showStep(event: Event): void {
  const list = (event.currentTarget as HTMLElement).querySelector("ol")!;
  const step = list.querySelector<HTMLElement>(".is-in_progress, .is-pending");
  if (step) list.scrollTop = step.offsetTop - list.offsetTop - list.clientHeight / 3;
}

function Step({ entry }: { entry: PlanEntry }): JSX.Element {
  return (
    <li class={`is-${entry.status}`}>
      <span role="img" aria-label={WORDS[entry.status] ?? ""}>
        {MARKS[entry.status] ?? "○"}
      </span>{" "}
      {entry.content}
    </li>
  );
}
