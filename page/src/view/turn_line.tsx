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
    const what = waiting === 1 ? "Your message waits" : `${waiting} messages wait`;
    return <p class="turn-line" role="status">{what} for the connection, and will be sent then.</p>;
  }
  if (!session.isBusy.value) {
    return others.length ? <p class="turn-line quiet">Also open in {others.join(", ")}</p> : <></>;
  }
  if (!crow.isUsable) return <p class="turn-line" role="status">No connection: how the turn goes on is shown when it is back.</p>;
  const wait = session.wait.value;
  const by = session.by.value && session.by.value !== OWN_NAME ? ` · begun in ${session.by.value}` : "";
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
  if (session.doing.value === "asks" || questionsOf(session.id).length) return "Waits for your answer";
  const last = session.transcript.items.at(-1);
  if (last?.is === "call" && !last.isSettled) return plainTitle(last.fields.value.title ?? "Works");
  if (last?.is === "message" && last.kind === "thought") return "Thinks";
  return last?.is === "message" && last.kind === "agent" ? "Writes" : "Waits for the model";
}
