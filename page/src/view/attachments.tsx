// Files that go along with a message: those that do, and how they are chosen or dropped.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { plainly } from "../hidden";
import type { Draft } from "../model/composing";
import { Icon } from "./icons";

export function Attachments({ draft }: { draft: Draft }): JSX.Element {
  if (!draft.attachments.value.length) return <></>;
  return (
    <ul class="attachments" aria-label="Attachments">
      {draft.attachments.value.map((attachment, index) => (
        <li key={index} class="attachment">
          <Icon name="file" /> <bdi>{plainly(attachment.name)}</bdi>
          <button
            type="button"
            class="bare"
            aria-label={`Remove ${attachment.name}`}
            onClick={() => {
              draft.attachments.value = draft.attachments.value.filter((one) => one !== attachment);
            }}
          >
            <Icon name="cross" />
          </button>
        </li>
      ))}
    </ul>
  );
}

export function AttachButton({ onFiles }: { onFiles: (files: Iterable<File>) => Promise<void> }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="bare" aria-label="Attach files" title="Attach files" onClick={() => input.current?.click()}>
        <Icon name="clip" />
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => {
          void onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

/** Files that are dropped anywhere on the page. A browser would leave the page and show them, and a draft would be gone. */
export function useDropped(onFiles: (files: Iterable<File>) => void): void {
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      latest.current([...event.dataTransfer.files]);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("drop", drop);
    };
  }, []);
}
