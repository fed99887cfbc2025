// A tool call: a row that says what is done and how it went, and opens to show it.

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { DiffItem, ToolContent } from "../acp";
import { OWN_NAME } from "../connection";
import { comment } from "../model/composing";
import { questions } from "../model/questions";
import type { Session } from "../model/session";
import type { Call } from "../model/transcript";
import { relative } from "../paths";
import { plainTitle } from "../plain_title";
import { TerminalFeed } from "../terminal_feed";
import { DiffView, TerminalView } from "../widgets";
import { Content } from "./content";
import { Icon, type IconName } from "./icons";
import { duration, Elapsed } from "./time";

const ICONS: Record<string, IconName> = {
  read: "file",
  edit: "edit",
  delete: "trash",
  move: "file",
  search: "search",
  execute: "run",
  think: "think",
  fetch: "globe",
};

export function CallCard({ session, call }: { session: Session; call: Call }): JSX.Element {
  const fields = call.fields.value;
  const [choice, setChoice] = useState<boolean | null>(null);
  const wasTyped = useRef(false);
  const isAsked = questions.value.some((one) => one.is === "permission" && one.request.toolCall.toolCallId === call.id && one.sessionId === session.id);
  // Who typed into a command looks at it: it stays open when it has ended.
  if (call.feed.value?.canType.value) wasTyped.current = true;
  const isOpen = choice ?? (wasTyped.current || (!isAsked && opensByItself(call))); // what is asked shows it already
  const content = fields.content ?? [];
  const hasMore = content.length > 0 || call.feed.value !== null || (fields.locations?.length ?? 0) > 1;
  const title = plainTitle(fields.title ?? fields.name ?? "");
  return (
    <section class={`call is-${call.status}`} aria-label={title}>
      <button class="call-head" aria-expanded={isOpen} disabled={!hasMore} onClick={() => setChoice(!isOpen)}>
        <span class="call-icon">
          <Icon name={ICONS[fields.kind ?? ""] ?? "tool"} />
        </span>
        <bdi class={fields.kind === "execute" ? "call-title is-code" : "call-title"}>{title}</bdi>
        <CallState call={call} />
        <span class="call-turn">
          <Icon name="right" />
        </span>
      </button>
      {isOpen && hasMore && <CallBody session={session} call={call} content={content} title={title} />}
    </section>
  );
}

/** A change is what people want to see, and so are pictures, and a command that runs or failed. The rest is one line. */
function opensByItself(call: Call): boolean {
  const { kind, content } = call.fields.value;
  if (content?.some((item) => item.type === "diff" || (item.type === "content" && item.content.type === "image"))) return true;
  if (kind === "execute") return call.status !== "completed";
  return call.status === "failed";
}

function CallState({ call }: { call: Call }): JSX.Element {
  const answered = call.answeredBy.value;
  const seconds = call.seconds.value;
  return (
    <span class="call-state">
      {answered && answered.by !== OWN_NAME && (
        <span>{`${answered.allowed ? "allowed" : "rejected"} in ${answered.by}`}</span>
      )}
      {seconds !== null && seconds >= 0.1 && <span>{duration(seconds)}</span>}
      {call.status === "in_progress" && (
        <>
          {call.began !== null && <Elapsed since={call.began} />}
          <span class="spinner" role="img" aria-label="running" />
        </>
      )}
      {call.status === "completed" && <span class="good" role="img" aria-label="done"><Icon name="check" /></span>}
      {call.status === "failed" && <span class="bad" role="img" aria-label="failed"><Icon name="cross" /></span>}
      {call.status === "pending" && <span class="quiet">waiting</span>}
    </span>
  );
}

interface BodyProps {
  session: Session;
  call: Call;
  content: ToolContent[];
  title: string;
}

function CallBody({ session, call, content, title }: BodyProps): JSX.Element {
  const diffs = diffsIn(content, session.cwd, call.fields.value.kind);
  const past = usePastCommand(call);
  const feed = call.feed.value ?? past?.feed;
  return (
    <div class="call-body">
      {(call.fields.value.locations?.length ?? 0) > 1 && <Locations call={call} cwd={session.cwd} />}
      {!past && content.map((item, index) => item.type === "content" && <Content key={index} block={item.content} />)}
      {diffs.length > 0 && <DiffView items={diffs} onComment={(...said) => comment(session, ...said)} />}
      {feed && <TerminalView sessionId={session.id} toolCallId={call.id} feed={feed} title={title} command={wholeCommand(call, title)} text={past?.text} />}
    </div>
  );
}

/** A command of several lines, or one that is too long for its title. */
function wholeCommand(call: Call, title: string): string | undefined {
  const { command } = (call.fields.value.rawInput ?? {}) as { command?: unknown };
  return typeof command === "string" && !title.includes(command) ? command : undefined;
}

/** A command of which only the end was told: what it printed is in its result, and all of it can be asked for. */
function usePastCommand(call: Call): { feed: TerminalFeed; text: string } | null {
  const { kind, rawOutput } = call.fields.value;
  const isPast = call.feed.value === null && kind === "execute" && call.isSettled;
  return useMemo(() => {
    const end = isPast ? (rawOutput as { stdout?: string; exitCode?: number | null; signal?: string } | null | undefined) : null;
    if (typeof end?.stdout !== "string") return null;
    const feed = new TerminalFeed();
    feed.end.value = { code: end.exitCode ?? null, signal: end.signal ?? null };
    return { feed, text: end.stdout };
  }, [isPast, rawOutput]);
}

function Locations({ call, cwd }: { call: Call; cwd: string }): JSX.Element {
  return (
    <ul class="locations">
      {(call.fields.value.locations ?? []).slice(0, 20).map(({ path, line }) => (
        <li key={`${path}:${line ?? ""}`}>
          <bdi>{relative(path, cwd) + (line ? `:${line}` : "")}</bdi>
        </li>
      ))}
    </ul>
  );
}

/** The diffs among a call's content, with paths as people say them. */
/** The changes that a call makes. One that deletes says so by its kind, and leaves a file's new text empty. */
export function diffsIn(content: ToolContent[], cwd: string, kind?: string | null): DiffItem[] {
  return content.flatMap((item) => {
    if (item.type !== "diff") return [];
    const newText = kind === "delete" && !item.newText ? null : item.newText;
    return [{ ...item, newText, path: relative(item.path, cwd) }];
  });
}
