// Begins a session, in a folder of a session before it or in one that is typed.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { crow } from "../connection";
import { begin, folders, problem } from "../model/sessions";
import { openSession } from "../route";
import { dialog } from "./dialogs";
import { Dialog } from "./dialog";
import { Icon } from "./icons";

const MOST = 8;

export function NewSession(): JSX.Element {
  const [path, setPath] = useState("");
  const close = () => (dialog.value = null);
  const home = crow.agent.value?._meta?.crow?.cwd;
  const recent = [...new Set([...(home ? [home] : []), ...folders.value])].slice(0, MOST);
  const start = async (folder: string) => {
    const session = await begin(folder);
    if (!session) return;
    close();
    openSession(session.id);
    requestAnimationFrame(() => document.getElementById("composer")?.focus());
  };
  return (
    <Dialog label="New session" onClose={close}>
      <h2>New session</h2>
      <form
        class="typed-folder"
        onSubmit={(event) => {
          event.preventDefault();
          if (path.trim()) void start(path.trim());
        }}
      >
        <input
          aria-label="Folder"
          placeholder="/path/of/a/folder"
          value={path}
          autofocus
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setPath(event.currentTarget.value)}
        />
        <button class="primary" disabled={!path.trim()}>
          Begin
        </button>
      </form>
      {problem.value && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      {recent.length > 0 && <h3>Recent folders</h3>}
      <ul class="folders">
        {recent.map((folder) => (
          <li key={folder}>
            <button onClick={() => void start(folder)}>
              <Icon name="file" /> <bdi>{folder}</bdi>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
