// What is being written to a session: text, attachments, comments on lines. Kept by this browser until it is sent.

import { signal, type Signal } from "@preact/signals";
import type { ContentBlock, SessionId } from "../acp";
import { relative } from "../paths";
import { recall, remember } from "../storage";
import type { Session } from "./session";

export interface Attachment {
  name: string;
  block: ContentBlock;
}

export interface Draft {
  text: Signal<string>;
  attachments: Signal<Attachment[]>;
}

/** Larger files are refused: they go into the model's window whole. */
const LARGEST_TEXT = 512 * 1024;
const LARGEST_PICTURE = 8 * 1024 * 1024;
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;

/** Characters of a line that are quoted with a comment. */
const LONGEST_QUOTE = 300;

const drafts = new Map<SessionId, Draft>();

export function draftOf(id: SessionId): Draft {
  let draft = drafts.get(id);
  if (!draft) {
    draft = { text: signal(recall(`draft.${id}`, "")), attachments: signal<Attachment[]>([]) };
    drafts.set(id, draft);
    const { text } = draft;
    text.subscribe((value) => remember(`draft.${id}`, value));
  }
  return draft;
}

/** Put a comment on a line of a file into what is being written. */
export function comment(session: Session, path: string, line: number, text: string, quoted: string): void {
  const { text: draft } = draftOf(session.id);
  const name = relative(path, session.cwd);
  draft.value = `${draft.value}${draft.value && !draft.value.endsWith("\n") ? "\n" : ""}${name}:${line}\n> ${quoted.trim().slice(0, LONGEST_QUOTE)}\n${text}\n`;
}

/** Attach a file of this computer; returns why not, if it cannot be. */
export async function attach(draft: Draft, file: File): Promise<string> {
  if (PICTURES.test(file.type)) {
    if (file.size > LARGEST_PICTURE) return `${file.name} is too large: pictures may have 8 MB.`;
    const block: ContentBlock = { type: "image", mimeType: file.type, data: base64(new Uint8Array(await file.arrayBuffer())) };
    draft.attachments.value = [...draft.attachments.value, { name: file.name || "picture", block }];
    return "";
  }
  if (file.size > LARGEST_TEXT) return `${file.name} is too large: files may have 512 kB.`;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return `${file.name} is neither text nor a picture that can be sent.`;
  }
  const resource = { uri: `attachment:///${encodeURIComponent(file.name)}`, text, mimeType: file.type || "text/plain" };
  draft.attachments.value = [...draft.attachments.value, { name: file.name, block: { type: "resource", resource } }];
  return "";
}

export function attachLink(draft: Draft, name: string, uri: string): void {
  if (draft.attachments.value.some(({ block }) => block.type === "resource_link" && block.uri === uri)) return;
  draft.attachments.value = [...draft.attachments.value, { name, block: { type: "resource_link", name, uri } }];
}

/** What is written, as a prompt; the draft is empty afterwards. A file that is no longer named with @ is not sent. */
export function takeDraft(draft: Draft): ContentBlock[] {
  const text = draft.text.value.trim();
  const named = ({ name, block }: Attachment) => block.type !== "resource_link" || text.includes(`@${name}`);
  const content = draft.attachments.value.filter(named).map(({ block }) => block);
  draft.text.value = "";
  draft.attachments.value = [];
  return text ? [{ type: "text", text }, ...content] : content;
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(binary);
}
