// The whole page: the list of sessions, the one that is shown, and what lies over them.

import type { JSX } from "preact";
import { crow } from "./connection";
import { questions } from "./model/questions";
import { begin, current, currentId, isListed, needsSetup } from "./model/sessions";
import { openSession, openTab, tab, type Tab } from "./route";
import type { Refusal } from "./token";
import { Words } from "./view/content";
import { dialog } from "./view/dialogs";
import { ConnectionWord } from "./view/footer";
import { Icon, type IconName } from "./view/icons";
import { Sidebar } from "./view/sidebar";
import { AllQuestions, Talk } from "./view/talk";
import { Help, NewSession, Palette, Setup } from "./widgets";

export function App(): JSX.Element {
  const session = current.value;
  const state = crow.state.value;
  return (
    <div class={session ? "app has-session" : "app"} data-connection={state}>
      {state === "refused" && <Refused />}
      {crow.isOutdated && (
        <div class="banner" role="status">
          Crow was upgraded. <button onClick={() => location.reload()}>Load the page again</button>
        </div>
      )}
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
          <p>{welcome()}</p>
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

/** A session could not be begun: how to get a model for it. */
function SetupForNew({ folder }: { folder: string }): JSX.Element {
  const later = () => {
    needsSetup.value = null;
    dialog.value = null;
  };
  const again = async () => {
    needsSetup.value = null;
    const session = await begin(folder);
    dialog.value = null;
    if (session) openSession(session.id);
  };
  return <Setup onDone={() => void again()} onLater={later} />;
}

function welcome(): string {
  if (!currentId.value) return "Choose a session, or begin one.";
  return isListed.value ? "This session is no longer there." : "Looking for this session…";
}

const REFUSALS: Record<Refusal, string> = {
  nothing: "This page has to be opened by a link of Crow's.",
  link: "This link was opened before, or is older than ten minutes. If it was not you who opened it, `crow web --forget all` throws out who did.",
  token: "This page is no longer known to Crow.",
};

function Refused(): JSX.Element {
  return (
    <div class="banner is-refused" role="alert">
      <span>
        <Words text={REFUSALS[crow.refusal.value]} /> Run <code>crow web</code> for a new link.
      </span>
      {crow.refusal.value === "token" && <button onClick={() => crow.wake()}>Try again</button>}
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
        <button key={name} aria-current={tab.value === name ? "page" : undefined} onClick={() => openTab(name)}>
          <Icon name={icon} />
          <span>{label}</span>
          {name === "questions" && count > 0 && <span class="count">{count}</span>}
        </button>
      ))}
    </nav>
  );
}
