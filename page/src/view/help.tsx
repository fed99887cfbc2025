// The page's keys.

import type { JSX } from "preact";
import { ANSWER_KEYS } from "../answer_keys";
import { isMac } from "../media";
import { Dialog } from "./dialog";
import { dialog } from "./dialogs";

const KEYS: [string, string][] = [
  ["Ctrl K", "everything by its name"],
  ["/", "search all sessions"],
  ["n", "new session"],
  ["[ ]", "session before, session after"],
  ["j k", "next item, item before"],
  ["o", "open or fold the item"],
  ["i", "write a message"],
  ...ANSWER_KEYS,
  isMac ? ["Ctrl Option a", "allow while you write; so with the others"] : ["Alt a", "allow while you write; so with the others"],
  ["q", "to the next question"],
  ["d", "changed files"],
  ["t", "to the last terminal"],
  ["Esc", "stop the turn; close what is open"],
  ["Enter", "send (on a phone: new line)"],
  ["Shift Enter", "new line"],
  ["?", "this"],
];

export function Help(): JSX.Element {
  const close = () => (dialog.value = null);
  return (
    <Dialog label="Keys" onClose={close}>
      <h2>Keys</h2>
      <dl class="keys">
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div class="buttons">
        <button onClick={close}>Close</button>
      </div>
    </Dialog>
  );
}
