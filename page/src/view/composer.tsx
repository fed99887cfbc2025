// Where the person writes: text that grows, what goes along with it, sending and steering.

import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { crow } from "../connection";
import { isCoarse, isComposing, isNarrow } from "../media";
import { attach, draftOf, takeDraft } from "../model/composing";
import type { Session } from "../model/session";
import { Meters } from "../widgets";
import { AttachButton, Attachments, useDropped } from "./attachments";
import { Completions, useCompletion } from "./completions";
import { Icon } from "./icons";
import { Choices } from "./options";

export function Composer({ session }: { session: Session }): JSX.Element {
  const draft = draftOf(session.id);
  const text = draft.text.value;
  const area = useRef<HTMLTextAreaElement>(null);
  const [problem, setProblem] = useState("");
  const completion = useCompletion(session, draft, area);
  useGrowing(area, text);
  useDropped((dropped) => void files(dropped));

  const send = () => {
    if (session.isShut.value) return; // it would wait where nobody sees it
    const content = takeDraft(draft);
    if (content.length) session.send(content);
    completion.close();
    area.current?.focus();
  };
  const files = async (list: Iterable<File>) => {
    const problems: string[] = [];
    for (const file of list) problems.push(await attach(draft, file));
    setProblem(problems.filter(Boolean).join("\n"));
  };
  const pressed = (event: KeyboardEvent) => {
    if (isComposing(event) || completion.pressed(event)) return;
    if (event.key === "Enter" && !event.shiftKey && (!isCoarse.matches || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!event.repeat) send(); // a key still held down was meant for what had the focus before
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (session.isBusy.value) session.cancel();
      else document.querySelector<HTMLElement>(".scroller")?.focus(); // where letters are keys
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
        data-home
        rows={1}
        dir="auto"
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
          <button class="send" aria-label={session.isBusy.value ? "Send to the running turn" : "Send"} disabled={isEmpty || session.isShut.value}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function placeholder(session: Session): string {
  if (!crow.isUsable) return "Offline: your message is sent once connected";
  if (session.isShut.value) return "This session cannot be opened";
  if (session.isBusy.value) return "Message Crow while it works";
  return isCoarse.matches || isNarrow.matches ? "What should Crow do?" : "What should Crow do?   / for commands, @ for files";
}

/** As high as its text, up to what the style allows. */
function useGrowing(area: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = area.current!;
    element.style.height = "0";
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);
}
