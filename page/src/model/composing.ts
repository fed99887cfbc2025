// What is being written to a session: text, attachments, comments on lines. Kept by this browser until it is sent.

import { signal, type Signal } from "@preact/signals";
import type { ContentBlock, SessionId } from "../acp";
import { nameInAddress, relative } from "../paths";
import { recall, remember } from "../storage";
import { textOf } from "./outbox";
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

/** A picture without a name, such as one that was pasted. */
const PICTURE = "picture";

/** Characters of a line that are quoted with a comment. */
const LONGEST_QUOTE = 300;

const drafts = new Map<SessionId, Draft>();
const textKey = (id: SessionId): string => `draft.${id}`;
const attachedKey = (id: SessionId): string => `attached.${id}`;

export function draftOf(id: SessionId): Draft {
  let draft = drafts.get(id);
  if (!draft) {
    draft = { text: signal(recall(textKey(id), "")), attachments: signal<Attachment[]>(recall(attachedKey(id), [])) };
    drafts.set(id, draft);
    const { text, attachments } = draft;
    text.subscribe((value) => remember(textKey(id), value));
    attachments.subscribe((value) => {
      // A browser that has no room for them keeps none: those from before would be wrong.
      if (!remember(attachedKey(id), value.length ? value : null)) remember(attachedKey(id), null);
    });
  }
  return draft;
}

/** The session is deleted: what was written to it is gone too. */
export function forgetDraft(id: SessionId): void {
  remember(textKey(id), null);
  remember(attachedKey(id), null);
}

/** Put a comment on a line of a file into what is being written. */
export function comment(session: Session, path: string, line: number, text: string, quoted: string): void {
  const { text: draft } = draftOf(session.id);
  const name = relative(path, session.cwd);
  draft.value = `${draft.value}${draft.value && !draft.value.endsWith("\n") ? "\n" : ""}${name}:${line}\n> ${quoted.trim().slice(0, LONGEST_QUOTE)}\n${text}\n`;
}

/** Attach a file of this computer; returns why not, if it cannot be. */
export async function attach(draft: Draft, file: File): Promise<string> {
  const isPicture = PICTURES.test(file.type);
  if (isPicture && file.size > LARGEST_PICTURE) return `${file.name} is too large: pictures may have 8 MB.`;
  if (!isPicture && file.size > LARGEST_TEXT) return `${file.name} is too large: files may have 512 kB.`;
  let bytes: ArrayBuffer;
  try {
    bytes = await file.arrayBuffer();
  } catch {
    return `${file.name} cannot be read.`; // a folder, or a file that was changed or removed since it was chosen
  }
  try {
    const block = isPicture ? picture(file, bytes) : textFile(file, bytes);
    draft.attachments.value = [...draft.attachments.value, { name: file.name || PICTURE, block }];
    return "";
  } catch {
    return `${file.name} is neither text nor a picture that can be sent.`;
  }
}

function picture(file: File, bytes: ArrayBuffer): ContentBlock {
  return { type: "image", mimeType: file.type, data: base64(new Uint8Array(bytes)) };
}

/** Throws if it is no text. */
function textFile(file: File, bytes: ArrayBuffer): ContentBlock {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  const resource = { uri: `attachment:///${encodeURIComponent(file.name)}`, text, mimeType: file.type || "text/plain" };
  return { type: "resource", resource };
}

export function attachLink(draft: Draft, name: string, uri: string): void {
  if (draft.attachments.value.some(({ block }) => block.type === "resource_link" && block.uri === uri)) return;
  draft.attachments.value = [...draft.attachments.value, { name, block: { type: "resource_link", name, uri } }];
}

/** Messages that were sent and not taken come back, with what goes along with them, above what is being written. */
export function giveBack(draft: Draft, messages: ContentBlock[][]): void {
  const attached = messages.flat().filter((block) => block.type !== "text");
  draft.text.value = [...messages.map(textOf), draft.text.value].filter(Boolean).join("\n\n");
  if (attached.length) draft.attachments.value = [...attached.map((block) => ({ name: nameOf(block), block })), ...draft.attachments.value];
}

function nameOf(block: ContentBlock): string {
  if (block.type === "resource_link") return block.name;
  return block.type === "resource" ? nameInAddress(block.resource.uri) : PICTURE;
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
