// What can be chosen for a session: mode, model, thought level.

import type { JSX } from "preact";
import type { ConfigChoice } from "../acp";
import type { Session } from "../model/session";

export function Choices({ session }: { session: Session }): JSX.Element {
  return (
    <div class="choices">
      {session.choices.value.map(({ id, isMode, name, value, choices, choose }) => (
        <select
          key={id}
          class={isMode ? "choice is-mode" : "choice"}
          aria-label={name}
          title={name}
          value={value}
          onChange={(event) => void choose(event.currentTarget.value)}
        >
          {choices.map((choice) => (
            <Option key={choice.value ?? choice.group} choice={choice} />
          ))}
        </select>
      ))}
    </div>
  );
}

function Option({ choice }: { choice: ConfigChoice }): JSX.Element {
  if (!choice.options) return <option value={choice.value ?? ""}>{choice.name}</option>;
  return (
    <optgroup label={choice.name}>
      {choice.options.map((one) => (
        <Option key={one.value} choice={one} />
      ))}
    </optgroup>
  );
}
