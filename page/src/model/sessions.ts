// All sessions: those that live anywhere on this machine, those that are saved, and those that this page takes part in.

import { computed, effect, signal, untracked } from "@preact/signals";
import type { InboxRow, LiveState, ReleasedNotification, SessionId, SessionInfo, StateNotification, Update } from "../acp";
import { crow } from "../connection";
import { AUTH_REQUIRED, messageOf, RpcError } from "../rpc";
import { recall, remember } from "../storage";
import { forgetDraft } from "./composing";
import { forgetOutbox } from "./outbox";
import { questionsOf } from "./questions";
import { Session } from "./session";
import { callWithModel } from "./setup";

/** What the list shows of a session. "done" is this browser's own: its turn ended, and nobody has looked since. */
export type RowState = "asks" | "running" | "done" | "idle" | "saved";
export interface Row extends SessionInfo {
  state: RowState;
}

/** Pages of the list of saved sessions that are asked for: each has fifty. */
const MOST_PAGES = 200;
/** Sessions that ask are joined, so that their questions can be answered from anywhere; so many at a time. */
const MOST_JOINED = 8;
/** Sessions in which nothing happens and that are not shown: this page leaves all but the last that were, so that Crow can close them. */
const MOST_KEPT = 8;

const saved = signal(new Map<SessionId, SessionInfo>());
const live = signal(new Map<SessionId, InboxRow>());
const opened = signal(new Map<SessionId, Session>());
const done = signal<Record<SessionId, boolean>>(recall("done", {}));
export const isListed = signal(false);
export const currentId = signal<SessionId | null>(null);
export const problem = signal("");
/** A session cannot be made before a model is set up; the folder that was asked for. */
export const needsSetup = signal<string | null>(null);

export const current = computed(() => (currentId.value ? opened.value.get(currentId.value) : undefined));

const ORDER: Record<RowState, number> = { asks: 0, running: 1, done: 2, idle: 3, saved: 3 };

export const rows = computed<Row[]>(() => {
  const all = new Map<SessionId, Row>();
  for (const info of saved.value.values()) all.set(info.sessionId, row(info));
  for (const info of live.value.values()) all.set(info.sessionId, row({ ...all.get(info.sessionId), ...info }));
  for (const session of opened.value.values()) {
    const known = all.get(session.id) ?? row({ sessionId: session.id, cwd: session.cwd, updatedAt: new Date(session.since.value).toISOString() });
    all.set(session.id, { ...known, title: session.title.value || known.title || "", state: stateOf(session.id, known.state, session) });
  }
  return [...all.values()].sort(
    (one, other) => ORDER[one.state] - ORDER[other.state] || (other.updatedAt ?? "").localeCompare(one.updatedAt ?? ""),
  );
});

/** Folders in which there are sessions, the newest first. */
export const folders = computed(() => [
  ...new Set([...rows.value].sort((one, other) => (other.updatedAt ?? "").localeCompare(one.updatedAt ?? "")).map((one) => one.cwd)),
]);

export const asksInAll = computed(() => rows.value.filter((one) => one.state === "asks").length);

function row(info: SessionInfo & { state?: LiveState | RowState }): Row {
  const state = info.state === undefined || info.state === "deleted" ? "saved" : info.state;
  return { ...info, title: info.title ?? "", state: stateOf(info.sessionId, state) };
}

function stateOf(id: SessionId, state: RowState, session?: Session): RowState {
  // This page knows best of what it takes part in; that it is asked for a reason is known to it alone.
  const now = session ? (questionsOf(id).length ? "asks" : session.doing.value) : state;
  return (now === "idle" || now === "saved") && done.value[id] ? "done" : now;
}

export function startSessions(): void {
  crow.onNotification("session/update", (params) => {
    const { sessionId, update } = params as { sessionId: SessionId; update: Update };
    opened.value.get(sessionId)?.apply(update);
  });
  crow.onNotification("_crow/state", (params) => {
    const news = params as StateNotification;
    const session = opened.value.get(news.sessionId);
    const row = live.value.get(news.sessionId);
    session?.changed(news);
    if (row) session?.listedSince(row);
    if (news.ended) ended(news.sessionId);
  });
  crow.onNotification("_crow/released", (params) => {
    const { sessionId, reason } = params as ReleasedNotification;
    void opened.value.get(sessionId)?.loadAgain(reason ?? "");
  });
  crow.onNotification("_crow/inbox", (params) => takeRows((params as { sessions: InboxRow[] }).sessions));
  effect(() => {
    if (crow.epoch.value) untracked(() => void connected());
  });
  effect(() => {
    if (!crow.isUsable) for (const session of opened.peek().values()) session.lost();
  });
  document.addEventListener("visibilitychange", looked);
}

/** Open a session that is in the list, or of which `info` says where it belongs, and show it. */
export function show(id: SessionId | null, info?: SessionInfo): void {
  if (id && info && !live.value.has(id) && !saved.value.has(id)) saved.value = new Map(saved.value).set(id, info);
  problem.value = "";
  currentId.value = id;
  looked();
  if (!id) return;
  join(id);
  leaveOthers();
}

/** Take part no longer in what was looked at long ago; a turn that runs there is watched to its end. */
function leaveOthers(): void {
  const shown = current.value;
  if (!shown || !crow.isUsable) return;
  const others = [...without(opened.value, shown.id).values()];
  opened.value = new Map([...others, shown].map((session) => [session.id, session])); // in the order in which they were shown
  const unused = others.filter((session) => !session.isNeeded && !session.isBusy.value && session.loading.value === "no");
  for (const { id } of unused.slice(0, -MOST_KEPT)) {
    opened.value = without(opened.value, id);
    crow.call("session/close", { sessionId: id }).catch(() => undefined); // then it is not open
  }
}

/** Take part in a session; false if it is not known where it belongs. */
function join(id: SessionId): boolean {
  if (opened.value.has(id)) return true;
  const known = live.value.get(id) ?? saved.value.get(id);
  if (!known) return false;
  const session = new Session(id, known.cwd);
  session.title.value = known.title ?? "";
  const lives = live.value.get(id);
  if (lives) session.listedAs(lives);
  opened.value = new Map(opened.value).set(id, session);
  void session.load();
  return true;
}

function joinCurrent(): void {
  const id = currentId.peek();
  if (id) join(id);
}

/** Begin a session in a folder. */
export async function begin(cwd: string): Promise<Session | undefined> {
  problem.value = "";
  try {
    const answer = await callWithModel("session/new", { cwd, mcpServers: [] });
    const session = new Session(answer.sessionId, cwd);
    session.opened(answer);
    opened.value = new Map(opened.value).set(session.id, session);
    needsSetup.value = null;
    show(session.id);
    return session;
  } catch (error) {
    if (error instanceof RpcError && error.code === AUTH_REQUIRED) needsSetup.value = cwd;
    problem.value = messageOf(error);
    return undefined;
  }
}

export async function deleteSession(id: SessionId): Promise<void> {
  try {
    await crow.call("session/delete", { sessionId: id });
    removed(id);
  } catch (error) {
    problem.value = messageOf(error);
  }
}

/** List the sessions that are saved, anew. */
export async function list(): Promise<void> {
  const found = new Map<SessionId, SessionInfo>();
  let cursor: string | null | undefined;
  try {
    for (let page = 0; page < MOST_PAGES; page++) {
      const answer = await crow.call("session/list", cursor ? { cursor } : {});
      for (const info of answer.sessions) found.set(info.sessionId, info);
      cursor = answer.nextCursor;
      if (!cursor) break;
      // The newest are shown at once, before all that is older was asked for.
      if (page === 0) saved.value = new Map([...saved.value, ...found]);
      joinCurrent();
    }
    saved.value = found;
    joinCurrent();
    isListed.value = true;
  } catch (error) {
    if (crow.isUsable) problem.value = messageOf(error);
  }
}

async function connected(): Promise<void> {
  // What is neither shown nor needed is joined again when it is shown.
  const kept = [...opened.peek()].filter(([id, session]) => id === currentId.peek() || session.isNeeded);
  opened.value = new Map(kept);
  for (const [, session] of kept) void session.load();
  await Promise.all([list(), askInbox()]);
  joinCurrent();
}

async function askInbox(): Promise<void> {
  try {
    const answer = await crow.call("_crow/inbox", {});
    live.value = new Map();
    takeRows(answer.sessions);
  } catch {
    // A Crow without an inbox: the list has what is saved, and what this page takes part in.
  }
}

function takeRows(news: InboxRow[]): void {
  const next = new Map(live.value);
  for (const one of news) {
    const before = next.get(one.sessionId);
    if (one.state === "deleted") {
      next.delete(one.sessionId);
      removed(one.sessionId);
      continue;
    }
    next.set(one.sessionId, one);
    opened.value.get(one.sessionId)?.listedSince(one);
    if (before && before.state !== one.state && (before.state === "running" || before.state === "asks") && one.state === "idle") {
      ended(one.sessionId);
    }
  }
  live.value = next;
  joinAsking();
}

/** Take part in sessions that ask; as soon as some are answered, in more of them. */
function joinAsking(): void {
  const isAsking = (id: SessionId) => live.value.get(id)?.state === "asks";
  const joined = [...opened.value.keys()].filter(isAsking).length;
  const others = [...live.value.keys()].filter((id) => isAsking(id) && !opened.value.has(id));
  for (const id of others.slice(0, Math.max(0, MOST_JOINED - joined))) join(id);
}

function removed(id: SessionId): void {
  saved.value = without(saved.value, id);
  live.value = without(live.value, id);
  opened.value = without(opened.value, id);
  forgetDraft(id);
  forgetOutbox(id);
  notDone(id);
  if (currentId.value !== id) return;
  history.replaceState(null, "", "#/");
  show(null);
}

function without<T>(map: Map<SessionId, T>, id: SessionId): Map<SessionId, T> {
  const next = new Map(map);
  next.delete(id);
  return next;
}

function notDone(id: SessionId): void {
  const { [id]: _, ...others } = done.value;
  setDone(others);
}

function ended(id: SessionId): void {
  if (id === currentId.value && document.visibilityState === "visible") return;
  setDone({ ...done.value, [id]: true });
}

/** The person looks at the session that is shown. */
function looked(): void {
  const id = currentId.value;
  if (!id || document.visibilityState !== "visible" || !done.value[id]) return;
  notDone(id);
}

function setDone(value: Record<SessionId, boolean>): void {
  done.value = value;
  remember("done", value);
}
