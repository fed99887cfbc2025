// The one connection to Crow: opens it, notices when it is gone, opens it again.
//
// What is shown of its state has to be true within a second. A server that ends closes the socket, which is known at once; a
// network that is gone says nothing, so while the page is seen and nothing comes, Crow is asked for a sign of life twice
// a second. `navigator.onLine` is no sign: a machine without a network still reaches the Crow that runs on it.

import { signal } from "@preact/signals";
import type { InitializeAnswer, Methods } from "./acp";
import { LOST, Rpc, RpcError, UNKNOWN_METHOD, type Asked } from "./rpc";
import { credential, dropLink, keepToken, NotKnown, type Refusal, whyRefused } from "./token";

export type ConnectionState =
  | "connecting" // the first time
  | "open"
  | "silent" // the socket is open, but nothing comes back
  | "lost" // tried again and again
  | "refused"; // Crow runs, and does not know this page

const IDLE_MS = 500;
const ANSWER_MS = 500;
const LONGEST_ANSWER_MS = 1000;
/** So long without a sign of life, and a new socket is better than this one. */
const GIVE_UP_MS = 4000;
const OPENING_MS = 5000;
/** The same of the first connection: its link is good once, so a try that is given up may have used it. */
const FIRST_OPENING_MS = 60_000;
/** A try that is older when somebody looks may be from before the machine slept: another one is made. */
const FRESH_MS = 1000;
/** Between two tries, and no longer than what is shown may be wrong. */
const PAUSES_MS = [100, 250, 500, 750];

/** This page's version, which is Crow's, and what it was built from: the build defines both. */
declare const PAGE_VERSION: string;
declare const PAGE_BUILD: string;
/** How Crow names this page to other clients, and so how the page knows itself in what Crow says. */
export const OWN_NAME = "Browser";
const INITIALIZE = {
  protocolVersion: 1,
  clientInfo: { name: "crow-page", title: OWN_NAME, version: PAGE_VERSION },
  clientCapabilities: {
    session: { notices: {}, compaction: {} },
    elicitation: { form: {} },
    _meta: { terminal_output: true },
  },
  _meta: { crow: { state: true, changes: true, typing: true, choices: true } },
};

interface Attempt {
  since: number;
  cancel: AbortController;
  /** The link that it shows may be used up by it, and it is not given up for another one. */
  isByLink: boolean;
}

class Connection {
  readonly state = signal<ConnectionState>("connecting");
  /** Counts the connections that were initialized: whoever depends on one does its work again when it changes. */
  readonly epoch = signal(0);
  /** Why Crow refused this page when it last did. */
  readonly refusal = signal<Refusal>("nothing");
  readonly agent = signal<InitializeAnswer | null>(null);

  private socket: WebSocket | null = null;
  /** The try that is under way. First the server proves itself; there is no socket before it has. */
  private attempt: Attempt | null = null;
  private rpc: Rpc | null = null;
  private failures = 0;
  private refusals = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private heardAt = 0;
  private askedAt = 0;
  private roundTrip = 50;
  private readonly requests = new Map<string, (asked: Asked) => Promise<unknown>>();
  private readonly notifications = new Map<string, (params: unknown) => void>();

  /** Answers the agent's requests of this method. */
  onRequest(method: string, handler: (asked: Asked) => Promise<unknown>): void {
    this.requests.set(method, handler);
  }

  onNotification(method: string, handler: (params: unknown) => void): void {
    this.notifications.set(method, handler);
  }

  start(): void {
    void this.connect();
    setInterval(() => this.feelPulse(), 250);
    const look = () => document.visibilityState === "visible" && this.wake();
    document.addEventListener("visibilitychange", look);
    addEventListener("pageshow", look);
    addEventListener("online", look);
    addEventListener("offline", look);
  }

  /** A request; rejected with `LOST` while there is no connection, and when it goes away before the answer. */
  call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    if (!this.rpc || !this.epoch.peek() || !usable(this.state.peek())) {
      return Promise.reject(new RpcError(LOST, "There is no connection to Crow."));
    }
    return this.rpc.call(method, params);
  }

  notify(method: string, params: object): void {
    if (usable(this.state.peek())) this.rpc?.notify(method, params);
  }

  /** Whether a request can be sent. */
  get isUsable(): boolean {
    return usable(this.state.value);
  }

  /** Try at once, because somebody looks or says so. */
  wake(): void {
    if (this.isUsable) return this.ping();
    if (this.attempt && (this.attempt.isByLink || Date.now() - this.attempt.since < FRESH_MS)) return;
    this.drop();
    void this.connect();
  }

  /** Whether Crow serves another page than this one, as after an upgrade. */
  get isOutdated(): boolean {
    const served = this.agent.value?._meta?.crow?.page;
    return !!served && served !== PAGE_BUILD;
  }

  private async connect(): Promise<void> {
    clearTimeout(this.retry);
    this.attempt?.cancel.abort();
    const attempt: Attempt = (this.attempt = { since: Date.now(), cancel: new AbortController(), isByLink: false });
    try {
      const who = await credential(attempt.cancel.signal);
      if (this.attempt !== attempt) return;
      if (who) {
        attempt.isByLink = whyRefused() === "link";
        return this.open(who, attempt.isByLink ? FIRST_OPENING_MS : OPENING_MS);
      }
      this.attempt = null;
      this.state.value = "refused";
    } catch (error) {
      if (this.attempt !== attempt) return; // another try is under way
      this.attempt = null;
      const isRefused = error instanceof NotKnown;
      if (isRefused) this.refusal.value = whyRefused();
      this.failed(isRefused);
    }
  }

  private open(who: string, patience: number): void {
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/acp`, ["acp.v1", who]);
    const rpc = new Rpc((text) => socket.readyState === WebSocket.OPEN && socket.send(text), {
      request: (asked) => this.answer(asked),
      notification: (method, params) => this.notifications.get(method)?.(params),
    });
    this.socket = socket;
    this.rpc = rpc;
    let opened = false;
    let isGivenUp = false;
    const tooLong = setTimeout(() => {
      isGivenUp = true;
      socket.close();
    }, patience);
    socket.onopen = () => {
      opened = true;
      clearTimeout(tooLong);
      void this.initialize(rpc);
    };
    socket.onmessage = (event) => {
      this.heard();
      if (typeof event.data === "string") rpc.receive(event.data);
    };
    socket.onclose = () => {
      clearTimeout(tooLong);
      if (this.socket === socket) void this.lost(!opened && !isGivenUp);
    };
  }

  private async initialize(rpc: Rpc): Promise<void> {
    try {
      const answer = await rpc.call("initialize", INITIALIZE);
      keepToken(answer._meta?.crow?.token);
      this.failures = this.refusals = 0;
      this.heard();
      this.agent.value = answer;
      this.attempt = null;
      this.state.value = "open";
      this.epoch.value++;
    } catch {
      this.socket?.close();
    }
  }

  private async lost(mayBeRefused: boolean): Promise<void> {
    this.socket = this.attempt = null;
    if (this.state.value !== "refused") this.state.value = this.epoch.value ? "lost" : "connecting";
    this.rpc?.end(); // after the state: whoever is told that an answer will not come looks at it
    this.rpc = null;
    this.askedAt = 0;
    // A handshake that failed says nothing of why. A server that answers otherwise has refused our link. It has not refused
    // our token, of which it has just proved that it is known: it may end, or have too many clients.
    const isRefused = mayBeRefused && whyRefused() === "link" && (await isServed());
    if (isRefused) {
      this.refusal.value = whyRefused();
      if (dropLink()) return this.connect();
    }
    if (!this.attempt && !this.isUsable) this.failed(isRefused);
  }

  /** Try again in a moment; not if this page was refused, which may be chance once, if Crow has just been started again. */
  private failed(isRefused: boolean): void {
    if (isRefused && ++this.refusals > 1) {
      this.state.value = "refused";
      return;
    }
    this.state.value = this.epoch.value || this.failures ? "lost" : "connecting";
    this.retry = setTimeout(() => void this.connect(), PAUSES_MS[Math.min(this.failures++, PAUSES_MS.length - 1)]);
  }

  private async answer(asked: Asked): Promise<unknown> {
    const handler = this.requests.get(asked.method);
    if (!handler) throw new RpcError(UNKNOWN_METHOD, `The page has no method ${asked.method}.`);
    return handler(asked);
  }

  private heard(): void {
    this.heardAt = performance.now();
    if (this.state.value === "silent") this.state.value = "open";
  }

  private feelPulse(): void {
    if (!this.isUsable || document.visibilityState !== "visible") return;
    const now = performance.now();
    if (!this.askedAt) {
      if (now - this.heardAt > IDLE_MS) this.ping();
      return;
    }
    const silence = now - Math.max(this.askedAt, this.heardAt);
    if (silence > GIVE_UP_MS) this.abandon();
    else if (silence > Math.min(LONGEST_ANSWER_MS, Math.max(ANSWER_MS, 4 * this.roundTrip))) this.state.value = "silent";
  }

  private ping(): void {
    if (this.askedAt || !this.rpc) return;
    this.askedAt = performance.now();
    const rpc = this.rpc;
    // An agent that does not know the method answers too, and that is all that is asked.
    const done = () => {
      if (this.rpc !== rpc) return;
      const took = performance.now() - this.askedAt;
      if (took < LONGEST_ANSWER_MS) this.roundTrip += (took - this.roundTrip) / 4; // longer was no slow answer, but none
      this.askedAt = 0;
    };
    rpc.call("_crow/ping", {}).then(done, done);
  }

  /** A socket on which nothing comes. */
  private abandon(): void {
    this.drop();
    void this.lost(false);
  }

  /** Closing a socket may take long, so it is forgotten. */
  private drop(): void {
    const socket = this.socket;
    this.socket = null;
    if (socket) socket.onopen = socket.onclose = socket.onmessage = null;
    socket?.close();
  }
}

function usable(state: ConnectionState): boolean {
  return state === "open" || state === "silent";
}

/** Whether Crow answers at this address at all, and not a proxy in its place. */
async function isServed(): Promise<boolean> {
  try {
    return (await fetch("/", { method: "HEAD", cache: "no-store" })).status < 500;
  } catch {
    return false;
  }
}

export const crow = new Connection();
