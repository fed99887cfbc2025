// The large parts of the page: each is fetched when it is first drawn, and a plain text stands there until then.
// This file is the agreement between the page and these parts: their properties, and nothing of how they draw.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DiffItem, FileDiff, Methods, SessionId } from "./acp";
import { crow } from "./connection";
import { fetched } from "./fetched";
import type { FormQuestion } from "./model/questions";
import type { Outgoing } from "./model/outbox";
import type { Session } from "./model/session";
import type { Message } from "./model/transcript";
import { whenIdle, whenNear } from "./near";
import type { TerminalFeed } from "./terminal_feed";
import type { Arming } from "./view/arming";

/** A person's words about a line: of which file, its number, the words, and the line itself. */
export type OnComment = (path: string, line: number, words: string, quoted: string) => void;

export interface DiffViewProps {
  items: readonly (DiffItem | FileDiff)[];
  /**
   * Where single changes can be refused: which are accepted, by their index over all items in order, and what to call
   * when the person changes that. Without `onAccepted` there is nothing to choose.
   */
  accepted?: ReadonlySet<number>;
  onAccepted?: (accepted: ReadonlySet<number>) => void;
  /** What the person says about a line goes into the next prompt. Without it no line can be commented on. */
  onComment?: OnComment | undefined;
}

export interface TerminalViewProps {
  sessionId: SessionId;
  toolCallId: string;
  feed: TerminalFeed;
  /** The command in one line, for the terminal's name. */
  title: string;
  /** The command as it was given, where the title does not say all of it. */
  command?: string | undefined;
  /** What it printed, as text, for a command of which no raw output came (a session that was loaded). */
  text?: string | undefined;
}

export interface ChangesPanelProps {
  sessionId: SessionId;
  /** Counts up whenever a call ended that may have changed a file: ask again. */
  revision: number;
  /** Whether commands or servers may have changed files, which Crow does not know. */
  mayHaveUnseen: boolean;
  onComment: OnComment;
}

export interface FormViewProps {
  question: FormQuestion;
  arming: Arming;
}

export interface WaitingProps {
  session: Session;
  messages: Outgoing[];
}

export interface CopyingProps {
  message: Message;
}

export interface UndoDialogProps {
  session: Session;
  preview: Methods["_crow/undo"]["result"];
  onClose: () => void;
}

export interface SetupProps {
  /** What the model that is set up said, where there is one. */
  reason?: string;
  /** Called once a way was taken and is good. */
  onDone: () => void;
  onLater?: () => void;
}

/**
 * A component that is fetched when it is first drawn. `Before` stands in its place until it is there, and is busy: nobody
 * can answer a question about a change that is not shown.
 */
function lazy<P extends object>(fetch: () => Promise<ComponentType<P>>, Before: ComponentType<P>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    const [Component, setComponent] = useState<ComponentType<P> | undefined>(() => loaded);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      if (Component) return;
      // Not asked is whether it is loaded: another may have fetched it since this one was drawn.
      const gone = new AbortController();
      const show = (component: ComponentType<P>) => {
        loaded = component;
        if (!gone.signal.aborted) setComponent(() => component);
      };
      fetched(fetch, { signal: gone.signal, onFailure: () => setFailed(true) }).then(show, () => undefined);
      return () => gone.abort();
    }, [crow.epoch.value]);
    if (Component) return <Component {...props} />;
    return (
      <div aria-busy="true">
        <Before {...props} />
        {hasFailed && crow.isUsable && (
          // Crow may be another version since it was started again, which has other files.
          <p class="quiet" role="alert">
            A part of this page could not be fetched. <button class="link" onClick={() => location.reload()}>Load the page again</button>
          </p>
        )}
      </div>
    );
  };
}

export const DiffView = lazy<DiffViewProps>(
  async () => (await import("./diff/view")).DiffView,
  ({ items }) => <pre class="plain">{items.map((item) => `${item.path}\n`).join("")}</pre>,
);

export const TerminalView = lazy<TerminalViewProps>(
  async () => (await import("./terminal/view")).TerminalView,
  ({ feed }) => <pre class="plain">{feed.text.slice(-2000)}</pre>,
);

const seldom = () => import("./seldom");

/** Fetches what opens by a key, once the page is drawn: it shall be there at once, also while Crow is not. */
export function prefetchSeldom(): void {
  whenIdle(() => seldom().catch(() => undefined)); // what fails now is fetched when it is needed
}

export const ChangesPanel = lazy<ChangesPanelProps>(
  async () => (await seldom()).ChangesPanel,
  () => <p class="quiet">…</p>,
);

export const FormView = lazy<FormViewProps>(
  async () => (await seldom()).FormView,
  ({ question }) => <h2 class="question-title">{question.request.message}</h2>,
);

export const Setup = lazy<SetupProps>(
  async () => (await seldom()).Setup,
  ({ reason }) => <p class="quiet">{reason}</p>,
);

const Nothing = () => <></>;
export const UndoDialog = lazy<UndoDialogProps>(async () => (await seldom()).UndoDialog, Nothing);
export const Meters = lazy<{ session: Session }>(async () => (await seldom()).Meters, Nothing);
export const Plan = lazy<{ session: Session }>(async () => (await seldom()).Plan, Nothing);
export const TurnEnd = lazy<{ session: Session }>(async () => (await seldom()).TurnEnd, Nothing);
export const Waiting = lazy<WaitingProps>(async () => (await seldom()).Waiting, Nothing);
export const Copying = lazy<CopyingProps>(async () => (await seldom()).Copying, Nothing);
export const Palette = lazy<object>(async () => (await seldom()).Palette, Nothing);
export const NewSession = lazy<object>(async () => (await seldom()).NewSession, Nothing);
export const Help = lazy<object>(async () => (await seldom()).Help, Nothing);

/**
 * Colours the code in an element, in place, once that comes near to what is seen: text nodes become spans with the classes
 * of tokens. The text stays the same.
 */
export function highlight(element: HTMLElement, language: string): void {
  const off = whenNear(element, (isNear) => {
    if (!isNear) return;
    off();
    const colour = (module: typeof import("./highlight/highlight")) => module.highlight(element, language);
    fetched(() => import("./highlight/highlight")).then(colour, () => undefined); // without colours it can be read too
  });
}
