// One session: its head, the talk, what is asked, and the composer.

import type { JSX } from "preact";
import { questions, questionsOf } from "../model/questions";
import type { Session } from "../model/session";
import { asksInAll, currentId } from "../model/sessions";
import { openNextQuestion, openSession, showsChanges, tab, toggleChanges } from "../route";
import { ChangesPanel, Plan, Setup } from "../widgets";
import { comment } from "../model/composing";
import { lastPart } from "../paths";
import { Composer } from "./composer";
import { Icon } from "./icons";
import { QuestionCard } from "./question";
import { TranscriptView } from "./transcript";
import { TurnLine } from "./turn_line";

export function Talk({ session }: { session: Session }): JSX.Element {
  const asked = tab.value === "questions" ? [] : questionsOf(session.id); // there they are shown with all others
  return (
    <div class={showsChanges.value ? "session with-changes" : "session"} data-tab={tab.value}>
      <main class="talk" aria-label={session.title.value || "Session"}>
        <Head session={session} />
        <TranscriptView key={session.id} session={session} />
        <div class="dock">
          {session.problem.value && !session.needsSetup.value && (
            <p class="problem" role="alert">
              {session.problem.value}{" "}
              {session.isShut.value && (
                <button class="link" onClick={() => void session.load()}>
                  Try again
                </button>
              )}
            </p>
          )}
          {session.needsSetup.value && <Setup reason={session.problem.value} onDone={() => void session.load()} />}
          {asked[0] && <QuestionCard key={asked[0].key} question={asked[0]} more={asked.length - 1} />}
          {session.plan.value.length > 0 && <Plan session={session} />}
          <TurnLine session={session} />
          <Composer key={session.id} session={session} />
        </div>
      </main>
      {(showsChanges.value || tab.value === "changes") && (
        <aside class="side-panel" aria-label="Changed files">
          <ChangesPanel
            sessionId={session.id}
            revision={session.transcript.revision.value}
            mayHaveUnseen={session.transcript.mayHaveChangedUnseen}
            onComment={(...said) => comment(session, ...said)}
          />
        </aside>
      )}
      {tab.value === "questions" && <AllQuestions />}
    </div>
  );
}

function Head({ session }: { session: Session }): JSX.Element {
  const elsewhere = Math.max(
    questions.value.filter((one) => one.sessionId !== session.id).length,
    asksInAll.value - (questionsOf(session.id).length ? 1 : 0),
  );
  return (
    <header class="talk-head">
      <button class="bare to-list" aria-label="All sessions" onClick={() => openSession(null)}>
        <Icon name="back" />
      </button>
      <div class="talk-title">
        <h2 class="cut">
          <bdi>{session.title.value || "New session"}</bdi>
        </h2>
        <bdi class="quiet cut" title={session.cwd}>
          {lastPart(session.cwd)}
        </bdi>
        {session.loading.value === "again" && <span class="quiet" role="status">catching up…</span>}
      </div>
      {elsewhere > 0 && (
        <button class="asks" onClick={openNextQuestion}>
          {elsewhere} {elsewhere === 1 ? "question" : "questions"} elsewhere <kbd>q</kbd>
        </button>
      )}
      <button
        class="bare toggle-changes"
        aria-pressed={showsChanges.value}
        aria-label="Changed files"
        title="Changed files (d)"
        onClick={toggleChanges}
      >
        <Icon name="changes" />
      </button>
    </header>
  );
}

/** Every open question, of all sessions. */
export function AllQuestions(): JSX.Element {
  return (
    <section class="all-questions" aria-label="Questions">
      {questions.value.length === 0 && <p class="quiet empty">Nothing is asked.</p>}
      {questions.value.map((question) => (
        <QuestionCard key={question.key} question={question} isElsewhere={question.sessionId !== currentId.value || tab.value === "questions"} />
      ))}
    </section>
  );
}
