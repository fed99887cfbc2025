// Shows a command: what it writes, live and in colours, how it ended; with a button to stop it, its whole output on
// demand, and a line to type into it.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { crow } from "../connection";
import { fetched } from "../fetched";
import { visible } from "../hidden";
import { whenNear } from "../near";
import { messageOf } from "../rpc";
import type { CommandEnd, TerminalFeed } from "../terminal_feed";
import type { TerminalViewProps } from "../widgets";
import type { Screen } from "./screen";
import { OutputText } from "./text";

const FAR = 2000;

export function TerminalView({ sessionId, toolCallId, feed, title, command, text }: TerminalViewProps): JSX.Element {
  const end = feed.end.value;
  const isRunning = end === null;
  const [isWhole, setWhole] = useState(false);
  const [stopping, setStopping] = useState(false);
  const [trouble, setTrouble] = useState("");
  const ask = (request: Promise<unknown>) => {
    request.catch((error: unknown) => setTrouble(messageOf(error)));
  };
  const hasRaw = useHasRaw(feed);
  const type = (data: string) => ask(crow.call("_crow/input", { sessionId, toolCallId, data }));

  return (
    <section class="command" aria-label={`Output of ${title}`}>
      <header class="terminal-head">
        <Outcome end={end} />
        <span class="terminal-tools">
          <button
            type="button"
            class="tool"
            aria-pressed={isWhole}
            onClick={() => setWhole(!isWhole)}
          >
            {isWhole ? "Terminal" : "All output"}
          </button>
          {isRunning && (
            <button
              type="button"
              class="tool stop"
              disabled={stopping}
              onClick={() => {
                setStopping(true);
                ask(crow.call("_crow/stop", { sessionId, toolCallId }).finally(() => setStopping(false)));
              }}
            >
              {stopping ? "Stopping…" : "Stop"}
            </button>
          )}
        </span>
      </header>
      {command && (
        <pre class="terminal-command" tabIndex={0} aria-label="Command">
          {command.split("\n").map(visible).join("\n")}
        </pre>
      )}
      {trouble && (
        <p class="terminal-trouble" role="alert">
          {trouble}
        </p>
      )}
      {isWhole && <Whole sessionId={sessionId} toolCallId={toolCallId} fallback={() => feed.text || text || ""} />}
      {!isWhole && hasRaw && (
        <Live
          feed={feed}
          title={title}
          type={type}
          resize={(columns, rows) => {
            // A terminal that is too old to be sized is typed into all the same.
            crow.call("_crow/input/size", { sessionId, toolCallId, columns, rows }).catch(() => undefined);
          }}
        />
      )}
      {!isWhole && !hasRaw && <Snapshot text={text ?? ""} />}
      {feed.canType.value && isRunning && <TypingLine title={title} type={type} />}
    </section>
  );
}

/** Whether any raw output is there: without it the command is shown as text. */
function useHasRaw(feed: TerminalFeed): boolean {
  const [has, setHas] = useState(() => !feed.isEmpty);
  useEffect(() => {
    if (has) return undefined;
    if (!feed.isEmpty) setHas(true);
    return feed.subscribe(() => setHas(true));
  }, [feed, has]);
  return has;
}

function Outcome({ end }: { end: CommandEnd | null }): JSX.Element {
  if (!end) return <span class="chip running">running</span>;
  if (end.signal) return <span class="chip removed">ended by {end.signal}</span>;
  if (end.code === null) return <span class="chip removed">stopped</span>;
  return <span class={`chip ${end.code === 0 ? "added" : "removed"}`}>exit {end.code}</span>;
}

interface LiveProps {
  feed: TerminalFeed;
  title: string;
  type: (data: string) => void;
  resize: (columns: number, rows: number) => void;
}

/** The terminal itself: made when it comes near to what is seen, and taken away when it is far. */
function Live({ feed, title, type, resize }: LiveProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const screen = useSignal<Screen | null>(null);
  const latest = useRef({ type, resize });
  latest.current = { type, resize };
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    let wanted = false;
    let unsubscribe = () => {};
    const show = async () => {
      const { Screen, lastOf, MOST_TEXT } = await fetched(() => import("./screen"));
      if (!wanted || screen.value) return;
      element.style.minHeight = "";
      const made = new Screen(
        element,
        `Terminal: ${title}`,
        (data) => latest.current.type(data),
        (columns, rows) => latest.current.resize(columns, rows),
        () => element.closest("section")?.querySelector<HTMLElement>(".typing-line input")?.focus(),
      );
      const text = feed.text;
      made.write(text.length > MOST_TEXT ? lastOf(text) : text);
      unsubscribe = feed.subscribe((data) => made.write(data));
      screen.value = made;
    };
    const hide = () => {
      unsubscribe();
      if (!screen.value) return;
      element.style.minHeight = `${element.offsetHeight}px`;
      screen.value.end();
      screen.value = null;
      element.replaceChildren();
    };
    const off = whenNear(
      element,
      (isNear) => {
        wanted = isNear;
        if (isNear) void show();
        else hide();
      },
      FAR,
    );
    const sizes = new ResizeObserver(() => screen.value?.fit());
    sizes.observe(element);
    const recolour = () => screen.value?.recolour();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", recolour);
    const attributes = new MutationObserver(recolour);
    attributes.observe(document.documentElement, { attributes: true });
    return () => {
      wanted = false;
      off();
      hide();
      sizes.disconnect();
      attributes.disconnect();
      dark.removeEventListener("change", recolour);
    };
  }, [feed]);
  const canType = feed.canType.value;
  const made = screen.value;
  useEffect(() => made?.type(canType), [made, canType]);
  return (
    <>
      {feed.isCut && <p class="terminal-note">The beginning is in “All output”.</p>}
      <div ref={host} class="terminal-screen" />
    </>
  );
}

/** What a loaded session knows of a command: its text. */
function Snapshot({ text }: { text: string }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    element.replaceChildren();
    const shown = new OutputText(element);
    shown.append(text);
    shown.finish();
    return () => shown.end();
  }, [text]);
  return <div ref={host} class="terminal-text" tabIndex={0} role="group" aria-label="Output" />;
}

interface WholeProps {
  sessionId: string;
  toolCallId: string;
  fallback: () => string;
}

/** All that a command wrote, fetched piece by piece as the person scrolls. */
function Whole({ sessionId, toolCallId, fallback }: WholeProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const [told, setTold] = useState("");
  const toEnd = useRef(() => {});
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const lines = document.createElement("div");
    const sentinel = document.createElement("div");
    element.replaceChildren(lines, sentinel);
    const shown = new OutputText(lines);
    let offset = 0;
    let isGone = false;
    let isNear = false;
    let isBusy = false;
    let wantsEnd = false;
    let later = 0;
    const scroll = () => element.scrollTo(0, element.scrollHeight);
    toEnd.current = () => {
      wantsEnd = true;
      scroll();
      void more();
    };
    const more = async () => {
      if (isBusy || isGone || !(isNear || wantsEnd)) return;
      isBusy = true;
      try {
        const part = await crow.call("_crow/output", { sessionId, toolCallId, offset });
        if (isGone) return;
        shown.append(part.data);
        const isAtEnd = part.next >= part.total;
        if (isAtEnd && !part.running) shown.finish();
        setTold(sizeTold(shown.lineCount, part.next, part.total));
        if (wantsEnd) requestAnimationFrame(() => requestAnimationFrame(scroll)); // once what is in sight there is drawn
        if (isAtEnd) wantsEnd = false;
        const stuck = part.next === offset;
        offset = part.next;
        isBusy = false;
        if (!isAtEnd && !stuck) requestAnimationFrame(() => void more());
        else if (part.running) later = window.setTimeout(() => void more(), 500);
        else off();
      } catch {
        if (isGone) return;
        // Crow has it no longer: what this page was sent is what there is.
        if (offset === 0) shown.append(fallback());
        shown.finish();
        setTold("Crow no longer has the whole output: this is what the page was sent.");
        off();
      }
    };
    const off = whenNear(sentinel, (near) => {
      isNear = near;
      if (near) void more();
    });
    return () => {
      isGone = true;
      clearTimeout(later);
      off();
      shown.end();
    };
  }, [sessionId, toolCallId]);
  return (
    <>
      <div ref={host} class="terminal-text whole" tabIndex={0} role="group" aria-label="All output" />
      <p class="terminal-note">
        <span role="status">{told}</span>{" "}
        <button type="button" class="tool" onClick={() => toEnd.current()}>
          To the end
        </button>
      </p>
    </>
  );
}

function sizeTold(lines: number, got: number, total: number): string {
  const count = lines.toLocaleString("en");
  return got < total ? `${count} lines so far; scroll for the rest` : `${count} lines`;
}

/** A line for those who do not type into the terminal itself: phones, screen readers. */
function TypingLine({ title, type }: { title: string; type: (data: string) => void }): JSX.Element {
  const [words, setWords] = useState("");
  return (
    <form
      class="typing-line"
      onSubmit={(event) => {
        event.preventDefault();
        type(`${words}\r`);
        setWords("");
      }}
    >
      <input
        type="text"
        value={words}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        placeholder="Type into this command"
        aria-label={`Type into ${title}`}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={(event) => event.stopPropagation()}
      />
      <button type="submit">Send</button>
      <button type="button" title="Interrupt (Ctrl-C)" onClick={() => type("\x03")}>
        Ctrl-C
      </button>
      <button type="button" title="End of input (Ctrl-D)" onClick={() => type("\x04")}>
        Ctrl-D
      </button>
    </form>
  );
}
