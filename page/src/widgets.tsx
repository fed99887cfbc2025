// The large parts of the page: each is fetched when it is first drawn, and a plain text stands there until then.
// This file is the agreement between the page and these parts: their properties, and nothing of how they draw.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DiffItem, FileDiff, SessionId } from "./acp";
import { crow } from "./connection";
import { fetched } from "./fetched";
import { whenNear } from "./near";
import type { TerminalFeed } from "./terminal_feed";

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
  /** The command, for the terminal's name. */
  title: string;
  /** Whether it still runs; if left out, until the feed has its end. */
  running?: boolean | undefined;
  /** What it printed, as text, for a command of which no raw output came (a session that was loaded). */
  text?: string | undefined;
}

export interface ChangesPanelProps {
  sessionId: SessionId;
  /** Counts up whenever a call ended that may have changed a file: ask again. */
  revision: number;
  onComment: OnComment;
}

/** A component that is fetched when it is first drawn. `Before` stands in its place until it is there. */
function lazy<P extends object>(fetch: () => Promise<ComponentType<P>>, Before: ComponentType<P>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    const [Component, setComponent] = useState<ComponentType<P> | undefined>(() => loaded);
    useEffect(() => {
      if (Component) return;
      // Not asked is whether it is loaded: another may have fetched it since this one was drawn.
      const show = (component: ComponentType<P>) => {
        loaded = component;
        setComponent(() => component);
      };
      fetch().then(show, () => undefined); // Crow is not reached: the plain text stays, until the next time
    }, [crow.epoch.value]);
    return Component ? <Component {...props} /> : <Before {...props} />;
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

export const ChangesPanel = lazy<ChangesPanelProps>(
  async () => (await import("./changes/panel")).ChangesPanel,
  () => <p class="quiet">…</p>,
);

/**
 * Colours the code in an element, in place, once that comes near to what is seen: text nodes become spans with the classes
 * of tokens. The text stays the same.
 */
export function highlight(element: HTMLElement, language: string): void {
  const off = whenNear(element, (isNear) => {
    if (!isNear) return;
    off();
    void fetched(() => import("./highlight/highlight")).then((module) => module.highlight(element, language));
  });
}
