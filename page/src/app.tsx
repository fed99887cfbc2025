// The whole page: the list of sessions, the one that is shown, and what lies over them.

import type { JSX } from "preact";
import { crow } from "./connection";
import { questions } from "./model/questions";
import { current, currentId, needsSetup } from "./model/sessions";
import { tab, type Tab } from "./route";
import { dialog } from "./view/dialogs";
import { ConnectionWord } from "./view/footer";
import { Help } from "./view/help";
import { Icon, type IconName } from "./view/icons";
import { NewSession } from "./view/new_session";
import { Palette } from "./view/palette";
import { SetupForNew } from "./view/setup";
import { Sidebar } from "./view/sidebar";
import { AllQuestions, Talk } from "./view/talk";

export function App(): JSX.Element {
  const session = current.value;
  const state = crow.state.value;
  return (
    <div class={session ? "app has-session" : "app"} data-connection={state}>
      {state === "refused" && <Refused />}
      {(state === "lost" || state === "silent") && (
        <div class="banner phone-only">
          <ConnectionWord />
        </div>
      )}
      <Sidebar />
      {session ? <Talk key={session.id} session={session} /> : <Nothing />}
      {session && <Tabs />}
      {dialog.value === "new" && !needsSetup.value && <NewSession />}
      {dialog.value === "palette" && <Palette />}
      {dialog.value === "help" && <Help />}
    </div>
  );
}

function Nothing(): JSX.Element {
  const folder = needsSetup.value;
  if (folder) {
    return (
      <main class="nothing">
        <SetupForNew folder={folder} />
      </main>
    );
  }
  return (
    <main class="nothing">
      {questions.value.length > 0 ? (
        <AllQuestions />
      ) : (
        <div class="welcome">
          <p>{currentId.value ? "Looking for this session…" : "Choose a session, or begin one."}</p>
          <button class="primary" onClick={() => (dialog.value = "new")}>
            New session <kbd>n</kbd>
          </button>
          <p class="quiet">
            <kbd>Ctrl</kbd> <kbd>K</kbd> finds everything, <kbd>?</kbd> shows all keys.
          </p>
        </div>
      )}
    </main>
  );
}

function Refused(): JSX.Element {
  return (
    <div class="banner is-refused" role="alert">
      <span>
        This page is no longer known to Crow: run <code>crow web</code> for a new link.
      </span>
      <button onClick={() => crow.wake()}>Try again</button>
    </div>
  );
}

const TABS: [Tab, string, IconName][] = [
  ["talk", "Talk", "talk"],
  ["changes", "Changes", "changes"],
  ["questions", "Questions", "ask"],
];

/** The phone's three views of a session. */
function Tabs(): JSX.Element {
  const count = questions.value.length;
  return (
    <nav class="tabs" aria-label="Views">
      {TABS.map(([name, label, icon]) => (
        <button key={name} aria-current={tab.value === name ? "page" : undefined} onClick={() => (tab.value = name)}>
          <Icon name={icon} />
          <span>{label}</span>
          {name === "questions" && count > 0 && <span class="count">{count}</span>}
        </button>
      ))}
    </nav>
  );
}
