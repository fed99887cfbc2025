// The foot of the list: whether Crow is connected, and the page's own settings.

import type { JSX } from "preact";
import { crow, type ConnectionState } from "../connection";
import { canNotify, notifies, toggleNotify } from "../notify";
import { isDark, toggleTheme } from "../theme";
import { dialog } from "./dialogs";
import { Icon } from "./icons";

const WORDS: Record<ConnectionState, string> = {
  connecting: "Connecting…",
  open: "Connected",
  silent: "No answer from Crow…",
  lost: "Connection lost, trying again…",
  refused: "Not connected",
};

export function ConnectionWord(): JSX.Element {
  const state = crow.state.value;
  return (
    <span class={`connection is-${state}`} role="status" data-state={state}>
      <span class="dot" aria-hidden="true" /> {WORDS[state]}
    </span>
  );
}

export function Footer(): JSX.Element {
  const dark = isDark();
  return (
    <footer>
      <ConnectionWord />
      {canNotify.value && (
        <button
          class="bare"
          aria-pressed={notifies.value}
          aria-label="Notify me"
          title="Notify me when something is asked or done"
          onClick={() => void toggleNotify()}
        >
          <Icon name="bell" />
        </button>
      )}
      <button class="bare" aria-label={dark ? "Light colours" : "Dark colours"} title={dark ? "Light" : "Dark"} onClick={toggleTheme}>
        <Icon name={dark ? "sun" : "moon"} />
      </button>
      <button class="bare" aria-label="Keys" title="Keys (?)" onClick={() => (dialog.value = "help")}>
        <Icon name="keys" />
      </button>
    </footer>
  );
}
