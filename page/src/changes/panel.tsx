// The files that a session has changed, beside the talk: each with its diff, on whose lines a person can comment.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ChangedFile, Methods } from "../acp";
import { crow } from "../connection";
import { Counts } from "../diff/counts";
import { plainly } from "../hidden";
import { messageOf } from "../rpc";
import { type ChangesPanelProps, DiffView } from "../widgets";

type Changes = Methods["_crow/changes"]["result"];

/** Files that programs write: nobody reads them first. */
const WRITTEN_BY_PROGRAMS =
  /(^|\/)(package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.ya?ml|go\.sum|[^/]*\.lock|[^/]*\.lockb|[^/]*\.min\.(js|css)|[^/]*\.map|[^/]*\.snap)$/i;
const KINDS = { added: "new", modified: "changed", deleted: "deleted" } as const;
const SIGNS = { added: "A", modified: "M", deleted: "D" } as const;

export function ChangesPanel({ sessionId, revision, mayHaveUnseen, onComment }: ChangesPanelProps): JSX.Element {
  const { answer, trouble } = useChanges(sessionId, revision);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [showsLocks, setShowsLocks] = useState(false);
  const toggle = (path: string) => {
    const next = new Set(open);
    if (!next.delete(path)) next.add(path);
    setOpen(next);
  };
  const known = answer?.files ?? [];
  const read = known.filter((file) => !WRITTEN_BY_PROGRAMS.test(file.path));
  const locks = known.filter((file) => WRITTEN_BY_PROGRAMS.test(file.path));
  const root = commonFolder(known.map((file) => file.path));
  const rows = (list: ChangedFile[]) =>
    list.map((file) => (
      <FileRow
        key={file.path}
        sessionId={sessionId}
        file={file}
        root={root}
        revision={revision}
        isOpen={open.has(file.path)}
        toggle={() => toggle(file.path)}
        onComment={onComment}
      />
    ));
  return (
    <section class="changes" aria-label="Changed files" onKeyDown={moveByKey}>
      {trouble && !answer ? (
        <p class="quiet">The changed files cannot be shown: {trouble}</p>
      ) : (
        <Summary files={known} isLoading={!answer} mayHaveUnseen={mayHaveUnseen} />
      )}
      <ul>{rows(read)}</ul>
      {locks.length > 0 && (
        <>
          <button type="button" class="twist locks" aria-expanded={showsLocks} onClick={() => setShowsLocks(!showsLocks)}>
            {locks.length === 1 ? "1 generated file" : `${locks.length} generated files`}
          </button>
          {showsLocks && <ul>{rows(locks)}</ul>}
        </>
      )}
      {mayHaveUnseen && known.length > 0 && <p class="quiet">Files that commands or servers changed are not listed.</p>}
    </section>
  );
}

function Summary({ files, isLoading, mayHaveUnseen }: { files: ChangedFile[]; isLoading: boolean; mayHaveUnseen: boolean }): JSX.Element {
  if (isLoading) return <p class="quiet">Looking for changes…</p>;
  if (files.length === 0) {
    const nothing = "Nothing has changed in this session yet.";
    const unknown = "Crow has edited no files itself. It does not know which files commands or servers have changed.";
    return <p class="quiet">{mayHaveUnseen ? unknown : nothing}</p>;
  }
  const sum = (key: "added" | "removed") => files.reduce((total, file) => total + file[key], 0);
  return (
    <p class="changes-sum" role="status">
      {files.length === 1 ? "1 file" : `${files.length} files`} <Counts added={sum("added")} removed={sum("removed")} />
    </p>
  );
}

interface RowProps {
  sessionId: string;
  file: ChangedFile;
  root: string;
  revision: number;
  isOpen: boolean;
  toggle: () => void;
  onComment: ChangesPanelProps["onComment"];
}

function FileRow({ sessionId, file, root, revision, isOpen, toggle, onComment }: RowProps): JSX.Element {
  const path = plainly(file.path.slice(root.length));
  const cut = path.lastIndexOf("/") + 1;
  return (
    <li>
      <button type="button" class="file" aria-expanded={isOpen} title={plainly(file.path)} onClick={toggle}>
        <span class={`sign ${file.kind}`} role="img" aria-label={KINDS[file.kind]}>
          {SIGNS[file.kind]}
        </span>
        <span class="diff-path">
          <b>{path.slice(cut)}</b>
          <span class="dir">
            <bdi>{path.slice(0, cut)}</bdi>
          </span>
        </span>
        <Counts added={file.added} removed={file.removed} />
      </button>
      {isOpen && <FileChanges sessionId={sessionId} file={file} name={path} revision={revision} onComment={onComment} />}
    </li>
  );
}

interface ChangesProps extends Pick<RowProps, "sessionId" | "file" | "revision" | "onComment"> {
  /** Its path as the row has it. */
  name: string;
}

/** The diff of one file; while a newer one is fetched, the last one stays. */
function FileChanges({ sessionId, file, name, revision, onComment }: ChangesProps): JSX.Element {
  const { answer, trouble } = useChanges(sessionId, revision, file.path);
  if (file.problem) return <p class="quiet">{file.problem}</p>;
  if (trouble && !answer) return <p class="quiet">This diff cannot be shown: {trouble}</p>;
  if (!answer) return <p class="quiet">…</p>;
  const items = answer.items ?? [];
  if (items.length === 0) return <p class="quiet">It is as it was before the session.</p>;
  return <DiffView items={items.map((item) => ({ ...item, path: name }))} onComment={(_, ...said) => onComment(file.path, ...said)} />;
}

/** The changed files, or with a path what has changed in that file; asked again with each revision and on each connection. */
function useChanges(sessionId: string, revision: number, path?: string): { answer: Changes | null; trouble: string } {
  const [answer, setAnswer] = useState<Changes | null>(null);
  const [trouble, setTrouble] = useState("");
  const epoch = crow.epoch.value;
  useEffect(() => {
    let isGone = false;
    crow.call("_crow/changes", { sessionId, ...(path === undefined ? {} : { path }) }).then(
      (changes) => {
        if (isGone) return;
        setAnswer(changes);
        setTrouble("");
      },
      (error: unknown) => {
        if (!isGone) setTrouble(messageOf(error));
      },
    );
    return () => {
      isGone = true;
    };
  }, [sessionId, path, revision, epoch]);
  return { answer, trouble };
}

/** The folder that all paths are in, with its slash. */
function commonFolder(paths: string[]): string {
  const folders = paths.map((path) => path.split("/").slice(0, -1));
  const first = folders[0] ?? [];
  let length = 0;
  while (length < first.length && folders.every((folder) => folder[length] === first[length])) length += 1;
  return length ? `${first.slice(0, length).join("/")}/` : "";
}

/** Up and down between the files. */
function moveByKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (!by || !target.matches("button.file, button.locks") || event.ctrlKey || event.metaKey || event.altKey) return;
  const list = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("button.file, button.locks")];
  list[list.indexOf(target) + by]?.focus();
  event.preventDefault();
  event.stopPropagation();
}
