// All sessions as an inbox: what asks first, then what runs, what is done, and the rest; search in titles and texts.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Methods } from "../acp";
import { crow } from "../connection";
import { whenNear } from "../near";
import { currentId, deleteSession, isListed, problem, rows, type Row, type RowState } from "../model/sessions";
import { RpcError, UNKNOWN_METHOD } from "../rpc";
import { openSession } from "../route";
import { lastPart } from "../paths";
import { Icon } from "./icons";
import { dialog } from "./dialogs";
import { Footer } from "./footer";
import { Ago } from "./time";

type Match = Methods["_crow/search"]["result"]["matches"][number];

const STATES: Record<RowState, string> = { asks: "asks", running: "running", done: "done", idle: "", saved: "" };
const TYPING_MS = 150;
/** Crow has texts that it has not read yet: it is asked again after so long. */
const INDEXING_MS = 500;
/** Rows that are drawn at first, and again so many whenever somebody comes to their end. */
const ROWS = 200;

const query = signal("");
const matches = signal<Match[] | null>(null);
/** How much of what was said is still being read, for who looks for something in it. */
const progress = signal("");

export function Sidebar(): JSX.Element {
  const text = query.value;
  useSearch(text);
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <h1>
          <img src="/crow.svg" alt="" width="22" height="22" /> Crow
        </h1>
        <button class="bare" aria-label="New session" title="New session (n)" onClick={() => (dialog.value = "new")}>
          <Icon name="plus" />
        </button>
      </header>
      <label class="search">
        <Icon name="search" />
        <input
          id="search"
          type="search"
          placeholder="Search all sessions"
          aria-label="Search all sessions"
          value={text}
          onInput={(event) => (query.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && (query.value = "")}
        />
        {!text && <kbd>/</kbd>}
      </label>
      {problem.value && dialog.value !== "new" && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      <ul class="session-rows">{text ? <Found text={text} /> : <Inbox />}</ul>
      <Footer />
    </nav>
  );
}

function Inbox(): JSX.Element {
  if (!rows.value.length) {
    return (
      <li class="quiet empty">
        {isListed.value ? "No sessions yet." : crow.isUsable ? "Looking…" : ""}
        {isListed.value && (
          <button class="primary phone-only" onClick={() => (dialog.value = "new")}>
            Start one
          </button>
        )}
      </li>
    );
  }
  return <Rows />;
}

function Rows(): JSX.Element {
  const [count, setCount] = useState(ROWS);
  const all = rows.value;
  const hasMore = all.length > count;
  return (
    <>
      {all.slice(0, count).map((row) => (
        <RowView key={row.sessionId} row={row} />
      ))}
      {hasMore && <End key={count} onNear={() => setCount(count + ROWS)} />}
    </>
  );
}

/** Where the rows that are drawn end, and others follow. */
function End({ onNear }: { onNear: () => void }): JSX.Element {
  const end = useRef<HTMLLIElement>(null);
  useEffect(() => whenNear(end.current!, (isNear) => isNear && onNear()), []);
  return <li ref={end} aria-hidden="true" />;
}

function RowView({ row }: { row: Row }): JSX.Element {
  const word = STATES[row.state];
  const isCurrent = row.sessionId === currentId.value;
  return (
    <li class={`row is-${row.state}`}>
      <button class="row-open" aria-current={isCurrent ? "page" : undefined} onClick={() => openSession(row.sessionId)}>
        <span class="row-title">
          <span class="dot" aria-hidden="true" />
          <bdi class="cut">{row.title || "Untitled"}</bdi>
        </span>
        <span class="row-facts">
          <bdi class="cut" title={row.cwd}>
            {lastPart(row.cwd)}
          </bdi>
          <span>{word || <Ago iso={row.updatedAt} />}</span>
        </span>
      </button>
      <button
        class="bare row-delete"
        aria-label={`Delete ${row.title || "this session"}`}
        title="Delete"
        onClick={() => confirm(`Delete “${row.title || "Untitled"}” for good?`) && void deleteSession(row.sessionId)}
      >
        <Icon name="trash" />
      </button>
    </li>
  );
}

function Found({ text }: { text: string }): JSX.Element {
  const found = matches.value ?? inTitles(text);
  if (!found.length)
    return <li class="quiet empty">{progress.value || (matches.value || !crow.isUsable ? "Nothing found." : "Searching…")}</li>;
  return (
    <>
      {progress.value && <li class="quiet empty">{progress.value}</li>}
      {found.map((match) => (
        <li key={match.sessionId} class="row">
          <button class="row-open" onClick={() => openSession(match.sessionId, match)}>
            <span class="row-title">
              <bdi class="cut">{match.title || "Untitled"}</bdi>
            </span>
            <span class="match">{match.parts.map((part, index) => (part.hit ? <mark key={index}>{part.text}</mark> : part.text))}</span>
            <span class="row-facts">
              <bdi class="cut">{lastPart(match.cwd)}</bdi>
              <span><Ago iso={match.updatedAt} /></span>
            </span>
          </button>
        </li>
      ))}
    </>
  );
}

function progressOf({ unread, sessions }: Methods["_crow/search"]["result"]): string {
  return unread && sessions ? `Reading: ${(sessions - unread).toLocaleString()} of ${sessions.toLocaleString()} sessions.` : "";
}

/** What is found in the titles that are known here, until Crow has looked into the texts. */
function inTitles(text: string): Match[] {
  const wanted = text.toLowerCase();
  return rows.value
    .filter((row) => `${row.title} ${row.cwd}`.toLowerCase().includes(wanted))
    .map((row) => ({ ...row, where: "title" as const, parts: [] }));
}

function useSearch(text: string): void {
  useEffect(() => {
    matches.value = null;
    progress.value = "";
    if (!text.trim()) return;
    const search = async () => {
      try {
        const answer = await crow.call("_crow/search", { query: text });
        if (query.value !== text) return;
        matches.value = answer.matches;
        progress.value = progressOf(answer);
        if (answer.indexing) timer = setTimeout(search, INDEXING_MS);
      } catch (error) {
        if (query.value === text) matches.value = inTitles(text);
        if (error instanceof RpcError && error.code !== UNKNOWN_METHOD && crow.isUsable) problem.value = error.message;
      }
    };
    let timer = setTimeout(search, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
}
