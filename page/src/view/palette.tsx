// Ctrl-K: everything by its name. Sessions, commands, modes and models of the session that is shown, the page's own deeds.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ConfigChoice } from "../acp";
import { draftOf } from "../model/composing";
import type { Session } from "../model/session";
import { current, rows } from "../model/sessions";
import { hasChanges, openSession } from "../route";
import { toggleTheme } from "../theme";
import { Dialog } from "./dialog";
import { dialog } from "./dialogs";

interface Deed {
  name: string;
  kind: string;
  run(): void;
}

const MOST = 40;

export function Palette(): JSX.Element {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const all = useMemo(deeds, []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((deed) => words.every((word) => `${deed.kind} ${deed.name}`.toLowerCase().includes(word))).slice(0, MOST);
  const close = () => (dialog.value = null);
  const run = (deed: Deed | undefined) => {
    if (!deed) return;
    close();
    deed.run();
  };
  const pressed = (event: KeyboardEvent) => {
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
        aria-controls="deeds"
        aria-activedescendant={found.length ? `deed-${index}` : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setIndex(0);
        }}
        onKeyDown={pressed}
      />
      <ul id="deeds" role="listbox" aria-label="Commands">
        {found.map((deed, at) => (
          <li
            key={`${deed.kind} ${deed.name} ${at}`}
            id={`deed-${at}`}
            role="option"
            aria-selected={at === index}
            onClick={() => run(deed)}
            ref={(element) => {
              if (at === index) element?.scrollIntoView({ block: "nearest" });
            }}
          >
            <span class="quiet">{deed.kind}</span> <bdi class="cut">{deed.name}</bdi>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function deeds(): Deed[] {
  const session = current.value;
  return [
    ...(session ? ofSession(session) : []),
    { kind: "Page", name: "New session", run: () => (dialog.value = "new") },
    { kind: "Page", name: "Light or dark", run: toggleTheme },
    { kind: "Page", name: "Keys", run: () => (dialog.value = "help") },
    ...rows.value.map((row) => ({ kind: "Session", name: row.title || row.cwd, run: () => openSession(row.sessionId) })),
  ];
}

function ofSession(session: Session): Deed[] {
  const write = (text: string) => {
    draftOf(session.id).text.value = text;
    document.getElementById("composer")?.focus();
  };
  return [
    ...(session.isBusy.value ? [{ kind: "Turn", name: "Stop", run: () => session.cancel() }] : []),
    { kind: "Page", name: "Changed files", run: () => (hasChanges.value = !hasChanges.value) },
    ...session.options.value.flatMap((option) =>
      leaves(option.options).map((choice) => ({
        kind: option.name,
        name: choice.name,
        run: () => void session.setOption(option.id, choice.value ?? ""),
      })),
    ),
    ...(session.modes.value?.availableModes ?? []).map((mode) => ({
      kind: "Mode",
      name: mode.name,
      run: () => void session.setMode(mode.id),
    })),
    ...session.commands.value.map((command) => ({
      kind: "Command",
      name: `/${command.name} – ${command.description}`,
      run: () => (command.input ? write(`/${command.name} `) : session.send([{ type: "text", text: `/${command.name}` }])),
    })),
  ];
}

function leaves(choices: ConfigChoice[]): ConfigChoice[] {
  return choices.flatMap((choice) => (choice.options ? leaves(choice.options) : [choice]));
}
