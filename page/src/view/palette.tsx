// Ctrl-K: everything by its name. Sessions, commands, modes and models of the session that is shown, the page's own commands.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ConfigChoice } from "../acp";
import { isComposing } from "../media";
import { draftOf } from "../model/composing";
import type { Session } from "../model/session";
import { current, rows } from "../model/sessions";
import { openSession, toComposer, toggleChanges } from "../route";
import { toggleTheme } from "../theme";
import { Dialog } from "./dialog";
import { dialog } from "./dialogs";

/** Something that can be done by its name. */
interface NamedCommand {
  name: string;
  kind: string;
  run(): void;
}

const MOST = 40;

export function Palette(): JSX.Element {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const all = useMemo(allCommands, []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((command) => words.every((word) => `${command.kind} ${command.name}`.toLowerCase().includes(word))).slice(0, MOST);
  const close = () => (dialog.value = null);
  const run = (command: NamedCommand | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const pressed = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) setIndex((index + step + found.length) % found.length);
    else if (event.key === "Enter") run(found[index]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Command palette" class="palette" onClose={close}>
      <input
        autofocus
        aria-label="Command"
        placeholder="Go to a session, run a command, choose a model…"
        role="combobox"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={found.length ? `command-${index}` : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setIndex(0);
        }}
        onKeyDown={pressed}
      />
      <ul id="commands" role="listbox" aria-label="Commands">
        {found.map((command, at) => (
          <li
            key={`${command.kind} ${command.name} ${at}`}
            id={`command-${at}`}
            role="option"
            aria-selected={at === index}
            onClick={() => run(command)}
            ref={(element) => {
              if (at === index) element?.scrollIntoView({ block: "nearest" });
            }}
          >
            <span class="quiet">{command.kind}</span> <bdi class="cut">{command.name}</bdi>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function allCommands(): NamedCommand[] {
  const session = current.value;
  return [
    ...(session ? ofSession(session) : []),
    { kind: "Page", name: "New session", run: () => (dialog.value = "new") },
    { kind: "Page", name: "Light or dark", run: toggleTheme },
    { kind: "Page", name: "Keys", run: () => (dialog.value = "help") },
    ...rows.value.map((row) => ({ kind: "Session", name: row.title || row.cwd, run: () => openSession(row.sessionId) })),
  ];
}

function ofSession(session: Session): NamedCommand[] {
  const write = (text: string) => {
    draftOf(session.id).text.value = text;
    toComposer();
  };
  return [
    ...(session.isBusy.value ? [{ kind: "Turn", name: "Stop", run: () => session.cancel() }] : []),
    { kind: "Page", name: "Changed files", run: toggleChanges },
    ...session.choices.value.flatMap(({ name: kind, choices, choose }) =>
      leaves(choices).map(({ name, value }) => ({ kind, name, run: () => void choose(value ?? "") })),
    ),
    // Said into a running turn, a command would reach the model as words.
    ...(session.isBusy.value ? [] : session.commands.value).map((command) => ({
      kind: "Command",
      name: `/${command.name} – ${command.description}`,
      run: () => (command.input ? write(`/${command.name} `) : session.send([{ type: "text", text: `/${command.name}` }])),
    })),
  ];
}

function leaves(choices: ConfigChoice[]): ConfigChoice[] {
  return choices.flatMap((choice) => (choice.options ? leaves(choice.options) : [choice]));
}
