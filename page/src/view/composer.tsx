// Where the person writes: text that grows, attachments, completion of commands and files, sending and steering.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { crow } from "../connection";
import { suggestions, typedAt, type Suggestion } from "../model/completion";
import { attach, attachLink, draftOf, takeDraft, type Draft } from "../model/composing";
import type { Session } from "../model/session";
import { Icon } from "./icons";
import { Choices, Meters } from "./options";

/** On a phone Enter makes a new line, as everywhere there; a button sends. */
const isCoarse = matchMedia("(pointer: coarse)");
const isNarrow = matchMedia("(max-width: 760px)");

export function Composer({ session }: { session: Session }): JSX.Element {
  const draft = draftOf(session.id);
  const text = draft.text.value;
  const area = useRef<HTMLTextAreaElement>(null);
  const [problem, setProblem] = useState("");
  const completion = useCompletion(session, draft, area);
  useGrowing(area, text);
  useLeftOver(session, draft);

  const send = () => {
    const content = takeDraft(draft);
    if (content.length) session.send(content);
    completion.close();
    area.current?.focus();
  };
  const files = async (list: Iterable<File>) => {
    for (const file of list) setProblem(await attach(draft, file));
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.isComposing || completion.pressed(event)) return;
    if (event.key === "Enter" && !event.shiftKey && (!isCoarse.matches || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (session.isBusy.value) session.cancel();
      else area.current?.blur();
    }
  };
  const isEmpty = !text.trim() && !draft.attachments.value.length;
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void files(event.dataTransfer?.files ?? []);
      }}
    >
      {completion.isOpen && <Completions completion={completion} />}
      <Attachments draft={draft} />
      {problem && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <textarea
        ref={area}
        id="composer"
        rows={1}
        aria-label="Message"
        placeholder={placeholder(session)}
        value={text}
        enterkeyhint={isCoarse.matches ? "enter" : "send"}
        aria-haspopup="listbox"
        aria-autocomplete="list"
        aria-controls={completion.isOpen ? "completions" : undefined}
        aria-activedescendant={completion.isOpen ? `completion-${completion.index}` : undefined}
        onInput={(event) => {
          draft.text.value = event.currentTarget.value;
          completion.typed();
        }}
        onClick={() => completion.typed()}
        onBlur={() => completion.close()}
        onKeyDown={pressed}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (!pasted.length) return;
          event.preventDefault();
          void files(pasted);
        }}
      />
      <div class="composer-foot">
        <AttachButton onFiles={files} />
        <Choices session={session} />
        <Meters session={session} />
        {session.isBusy.value && isEmpty ? (
          <button type="button" class="send is-stop" aria-label="Stop the turn" onClick={() => session.cancel()}>
            <Icon name="stop" />
          </button>
        ) : (
          <button class="send" aria-label={session.isBusy.value ? "Send into the running turn" : "Send"} disabled={isEmpty}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function placeholder(session: Session): string {
  if (!crow.isUsable) return "No connection: what you send waits for it";
  if (session.isBusy.value) return "Say something into the running turn";
  return isCoarse.matches || isNarrow.matches ? "What shall be done?" : "What shall be done?   / for commands, @ for files";
}

function Attachments({ draft }: { draft: Draft }): JSX.Element {
  if (!draft.attachments.value.length) return <></>;
  return (
    <ul class="attachments" aria-label="Attachments">
      {draft.attachments.value.map((attachment, index) => (
        <li key={index} class="attachment">
          <Icon name="file" /> <bdi>{attachment.name}</bdi>
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

function AttachButton({ onFiles }: { onFiles: (files: Iterable<File>) => Promise<void> }): JSX.Element {
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

/** As high as its text, up to what the style allows. */
function useGrowing(area: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = area.current!;
    element.style.height = "0";
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);
}

/** What was said into a turn too late comes back into the composer, if that is empty. */
function useLeftOver(session: Session, draft: Draft): void {
  const left = session.leftOver.value;
  useEffect(() => {
    if (left && !draft.text.value) draft.text.value = left;
    session.leftOver.value = "";
  }, [left]);
}

interface Completion {
  isOpen: boolean;
  found: Suggestion[];
  index: number;
  typed(): void;
  /** Whether the key was for the list. */
  pressed(event: KeyboardEvent): boolean;
  take(index?: number): void;
  close(): void;
}

function useCompletion(session: Session, draft: Draft, area: { current: HTMLTextAreaElement | null }): Completion {
  const [found, setFound] = useState<Suggestion[]>([]);
  const [index, setIndex] = useState(0);
  const asked = useRef(0);
  const close = () => {
    asked.current++;
    setFound([]);
  };
  const typed = () => {
    const at = typedAt(draft.text.value, area.current?.selectionStart ?? 0);
    const mine = ++asked.current;
    if (!at) return setFound([]);
    void suggestions(at, session.commands.value, session.id).then((all) => {
      if (asked.current !== mine) return; // more was typed meanwhile
      setFound(all);
      setIndex(0);
    });
  };
  const take = (which = index): void => {
    const suggestion = found[which];
    const element = area.current;
    const at = element && typedAt(draft.text.value, element.selectionStart);
    if (!suggestion || !at) return;
    const before = draft.text.value.slice(0, at.start) + suggestion.text;
    draft.text.value = before + draft.text.value.slice(element.selectionStart);
    if (suggestion.uri && suggestion.text.endsWith(" ")) attachLink(draft, suggestion.label, suggestion.uri);
    close();
    requestAnimationFrame(() => {
      element.focus();
      element.setSelectionRange(before.length, before.length);
      if (suggestion.text.endsWith("/")) typed(); // a folder: on to what is in it
    });
  };
  const pressed = (event: KeyboardEvent): boolean => {
    if (!found.length) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setIndex((index + step + found.length) % found.length);
    else if (event.key === "Tab") take();
    else if (event.key === "Enter" && !event.shiftKey && !isWhole(found[index], draft.text.value)) take();
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { isOpen: found.length > 0, found, index, typed, pressed, take, close };
}

/** The command is typed to its end: Enter sends it. */
function isWhole(suggestion: Suggestion | undefined, text: string): boolean {
  return suggestion !== undefined && text === `/${suggestion.text.trim()}`;
}

function Completions({ completion }: { completion: Completion }): JSX.Element {
  return (
    <ul class="completions" id="completions" role="listbox" aria-label="Suggestions">
      {completion.found.map((one, index) => (
        <li
          key={one.label}
          id={`completion-${index}`}
          role="option"
          aria-selected={index === completion.index}
          onPointerDown={(event) => {
            event.preventDefault(); // the text keeps the focus
            completion.take(index);
          }}
        >
          <bdi class="completion-label">{one.label}</bdi> <span class="quiet cut">{one.hint}</span>
        </li>
      ))}
    </ul>
  );
}
