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
    <details class="plan">
      <summary>
        <Icon name="pin" />
        <span class="plan-count">
          {done} of {entries.length}
        </span>
        <span class="cut">{next?.content ?? "Plan"}</span>
        <progress max={entries.length} value={done} aria-label="Plan" />
      </summary>
      <ol>
        {entries.map((entry, index) => (
          <Step key={index} entry={entry} />
        ))}
      </ol>
    </details>
  );
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
