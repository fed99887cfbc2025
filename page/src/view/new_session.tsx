// Begins a session, in a folder of a session before it or in one that is typed.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { crow } from "../connection";
import { begin, folders, problem } from "../model/sessions";
import { openSession, toComposer } from "../route";
import { dialog } from "./dialogs";
import { Dialog } from "./dialog";
import { Icon } from "./icons";

const MOST = 8;

export function NewSession(): JSX.Element {
  const [path, setPath] = useState("");
  const close = () => {
    problem.value = "";
    dialog.value = null;
  };
  useEffect(() => void (problem.value = ""), []);
  const facts = crow.agent.value?._meta?.crow;
  const recent = [...new Set([...(facts?.cwd ? [facts.cwd] : []), ...folders.value])].slice(0, MOST);
  const start = async (typed: string) => {
    const folder = typed.replace(/^~(?=\/|$)/, facts?.home || "~");
    if (!folder.startsWith("/")) return void (problem.value = "Type the whole path of the folder, from / or ~ on.");
    const session = await begin(folder);
    problem.value = problem.value.replace(/^Invalid params: `cwd`: /, ""); // the protocol's words for it
    if (!session) return;
    close();
    openSession(session.id);
    toComposer();
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
          placeholder="/path/of/a/folder or ~/folder"
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
              <Icon name="folder" /> <bdi>{folder}</bdi>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
