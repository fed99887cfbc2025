// One line above the composer: what the session is doing, what is waited for and since when, and how to stop it.

import type { JSX } from "preact";
import { crow, OWN_NAME } from "../connection";
import { questionsOf } from "../model/questions";
import { isTooOld } from "../model/outbox";
import type { Session } from "../model/session";
import { plainTitle } from "../plain_title";
import { Icon } from "./icons";
import { Elapsed } from "./time";

export function TurnLine({ session }: { session: Session }): JSX.Element {
  const others = session.faces.value.filter((face) => face !== OWN_NAME);
  const waiting = session.outbox.waiting.value.filter((one) => one.after === undefined && !isTooOld(one)).length;
  if (!crow.isUsable && waiting) {
    const what = waiting === 1 ? "Your message is queued" : `${waiting} messages are queued`;
    return <p class="turn-line" role="status">{what} and will be sent once connected.</p>;
  }
  if (!session.isBusy.value) {
    return others.length ? <p class="turn-line quiet">Also open in {others.join(", ")}</p> : <></>;
  }
  if (!crow.isUsable) return <p class="turn-line" role="status">Offline: the rest of this turn is shown once connected.</p>;
  const wait = session.wait.value;
  const by = session.by.value && session.by.value !== OWN_NAME ? ` · started in ${session.by.value}` : "";
  return (
    <div class="turn-line" role="status">
      <span class="spinner" aria-hidden="true" />
      <span class="cut">{(wait?.text ?? activity(session)) + by}</span>
      <span aria-hidden="true">
        <Elapsed since={wait?.since ?? session.since.value} />
      </span>
      <button class="link stop" onClick={() => session.cancel()}>
        <Icon name="stop" /> Stop <kbd>Esc</kbd>
      </button>
    </div>
  );
}

function activity(session: Session): string {
  void session.transcript.version.value;
  if (session.doing.value === "asks" || questionsOf(session.id).length) return "Waiting for you";
  const last = session.transcript.items.at(-1);
  if (last?.is === "call" && !last.isSettled) return plainTitle(last.fields.value.title ?? "Working");
  if (last?.is === "message" && last.kind === "thought") return "Thinking";
  return last?.is === "message" && last.kind === "agent" ? "Writing" : "Waiting for the model";
}
