// What a session has used: context and money.

import type { JSX } from "preact";
import type { Session } from "../model/session";

export function Meters({ session }: { session: Session }): JSX.Element {
  const usage = session.usage.value;
  if (!usage) return <></>;
  const part = usage.size ? Math.min(1, usage.used / usage.size) : 0;
  const percent = `${Math.round(part * 100)} %`;
  const cost = usage.cost && usage.cost.amount > 0 ? money(usage.cost.amount, usage.cost.currency) : "";
  return (
    <button
      type="button"
      class="meters"
      title={`${usage.used.toLocaleString()} of ${usage.size.toLocaleString()} tokens. Shows what fills them.`}
      aria-label={`Context ${percent} full${cost ? `, ${cost} spent` : ""}. Show what fills it`}
      disabled={session.isBusy.value}
      onClick={() => session.send([{ type: "text", text: "/context" }])}
    >
      <svg class={part > 0.8 ? "ring is-full" : "ring"} viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="6" />
        <circle cx="8" cy="8" r="6" pathLength="100" stroke-dasharray={`${part * 100} 100`} />
      </svg>
      <span>{percent}</span>
      {cost && <span class="cost">{cost}</span>}
    </button>
  );
}

function money(amount: number, currency: string): string {
  const digits = amount < 1 ? 3 : 2;
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits: digits }).format(amount);
  } catch {
    return `${amount.toFixed(digits)} ${currency}`;
  }
}

