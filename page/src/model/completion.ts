// What can be completed where the person types: a command at the beginning, or a file after an @.

import type { Command, SessionId } from "../acp";
import { crow } from "../connection";

export interface Suggestion {
  /** What stands in the text once it is taken. */
  text: string;
  label: string;
  hint: string;
  /** The address of a file, which goes along with the prompt. */
  uri?: string;
}

export interface Typed {
  kind: "command" | "file";
  /** What was typed after the / or the @, and where that begins. */
  query: string;
  start: number;
}

/** Files that are asked for. */
const MOST = 12;

/** What is being typed in front of the caret, if it can be completed. */
export function typedAt(text: string, caret: number): Typed | null {
  const before = text.slice(0, caret);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) return { kind: "command", query: command[1] ?? "", start: 1 };
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
  return file ? { kind: "file", query: file[1] ?? "", start: caret - (file[1]?.length ?? 0) } : null;
}

export async function suggestions(typed: Typed, commands: Command[], sessionId: SessionId): Promise<Suggestion[]> {
  return typed.kind === "command" ? matching(commands, typed.query) : files(typed.query, sessionId);
}

function matching(commands: Command[], query: string): Suggestion[] {
  const wanted = query.toLowerCase();
  const begins = commands.filter(({ name }) => name.toLowerCase().startsWith(wanted));
  const holds = commands.filter((one) => !begins.includes(one) && one.name.toLowerCase().includes(wanted));
  return [...begins, ...holds].map(({ name, description, input }) => ({
    text: `${name} `,
    label: `/${name}${input?.hint ? ` ${input.hint}` : ""}`,
    hint: description,
  }));
}

async function files(query: string, sessionId: SessionId): Promise<Suggestion[]> {
  try {
    const answer = await crow.call("_crow/files", { sessionId, query, limit: MOST });
    return answer.files.map(({ path, uri, isFolder }) => ({
      text: isFolder ? `${path.replace(/\/$/, "")}/` : `${path} `,
      label: path,
      hint: isFolder ? "folder" : "",
      uri,
    }));
  } catch {
    return []; // a Crow that does not list files: the name can be typed
  }
}
