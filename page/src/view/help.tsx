// The page's keys.

import type { JSX } from "preact";
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
  ["a r", "allow once, reject"],
  ["A", "allow from now on"],
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
