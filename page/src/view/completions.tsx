// Completes commands and files where the person writes.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { suggestions, typedAt, type Suggestion } from "../model/completion";
import { attachLink, type Draft } from "../model/composing";
import type { Session } from "../model/session";

export interface Completion {
  isOpen: boolean;
  found: Suggestion[];
  index: number;
  typed(): void;
  /** Whether the key was for the list. */
  pressed(event: KeyboardEvent): boolean;
  take(index?: number): void;
  close(): void;
}

export function useCompletion(session: Session, draft: Draft, area: { current: HTMLTextAreaElement | null }): Completion {
  const [found, setFound] = useState<Suggestion[]>([]);
  const [index, setIndex] = useState(0);
  const asked = useRef(0);
  const chosen = useRef(""); // by an arrow: it stays so if what is found for the last letter comes only now
  const waits = useRef(false); // a file was asked for before the session was loaded, when Crow knows none
  const close = () => {
    asked.current++;
    waits.current = false;
    setFound([]);
  };
  const typed = () => {
    const at = typedAt(draft.text.value, area.current?.selectionStart ?? 0);
    const mine = ++asked.current;
    chosen.current = "";
    waits.current = at?.kind === "file" && session.loading.value !== "no";
    // While a turn runs a slash is text: a command would reach the model as words.
    if (!at || (at.kind === "command" && session.isBusy.value)) return setFound([]);
    void suggestions(at, session.commands.value, session.id).then((all) => {
      if (asked.current !== mine) return; // more was typed meanwhile
      setFound(all);
      setIndex(Math.max(0, all.findIndex((one) => one.label === chosen.current)));
    });
  };
  // What was typed before the commands came, or while none could be given, is completed as soon as it can be.
  useEffect(() => {
    if (draft.text.value.startsWith("/") && document.activeElement === area.current) typed();
  }, [session.commands.value, session.isBusy.value]);
  useEffect(() => {
    if (session.loading.value === "no" && waits.current) typed();
  }, [session.loading.value]);
  const take = (which = index): void => {
    const suggestion = found[which];
    const element = area.current;
    const at = element && typedAt(draft.text.value, element.selectionStart);
    if (!suggestion || !at) return;
    const before = draft.text.value.slice(0, at.start) + suggestion.text;
    draft.text.value = before + draft.text.value.slice(element.selectionStart);
    element.value = draft.text.value; // at once: the next letter goes behind it
    element.focus();
    element.setSelectionRange(before.length, before.length);
    if (suggestion.uri && suggestion.text.endsWith(" ")) attachLink(draft, suggestion.label, suggestion.uri);
    close();
    if (suggestion.text.endsWith("/")) typed(); // a folder: on to what is in it
  };
  const pressed = (event: KeyboardEvent): boolean => {
    if (!found.length) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = (index + step + found.length) % found.length;
      chosen.current = found[next]?.label ?? "";
      setIndex(next);
    } else if (event.key === "Tab") take();
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

export function Completions({ completion }: { completion: Completion }): JSX.Element {
  return (
    <ul class="completions" id="completions" role="listbox" aria-label="Suggestions">
      {completion.found.map((one, index) => (
        <li
          key={one.label}
          id={`completion-${index}`}
          role="option"
          aria-selected={index === completion.index}
          ref={(element) => {
            if (index === completion.index) element?.scrollIntoView({ block: "nearest" });
          }}
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
