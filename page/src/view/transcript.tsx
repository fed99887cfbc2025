// The talk: all items of a session, in groups, so that a long one costs no more than a short one when something is added.

import { Component, type JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../model/session";
import type { Compaction, Item, Message, Remark } from "../model/transcript";
import { pieces } from "../pieces";
import { Copying, TurnEnd, Waiting } from "../widgets";
import { CallCard } from "./call";
import { Content, Words } from "./content";
import { Icon } from "./icons";
import { Markdown, StreamedMarkdown } from "./markdown";

/** Items are drawn and laid out in groups of this size, so that one more costs no more in a long session than in a short one. */
const GROUP = 40;
/** Pixels from the end at which the person counts as reading along. */
const AT_END = 60;

export function TranscriptView({ session }: { session: Session }): JSX.Element {
  const { transcript } = session;
  void transcript.version.value;
  const groups: Item[][] = [];
  for (let start = 0; start < transcript.items.length; start += GROUP) {
    groups.push(transcript.items.slice(start, start + GROUP));
  }
  const waiting = session.outbox.waiting.value.filter((one) => one.after === undefined);
  const scroller = useRef<HTMLDivElement>(null);
  const { isBehind, follow } = useFollowing(scroller, session);
  return (
    <div class="scroller" ref={scroller} data-home tabIndex={-1}>
      <div class="transcript" role="log" aria-label="Conversation" aria-live="polite" aria-relevant="additions">
        {groups.map((items, index) => (
          <Group key={index} session={session} items={items} />
        ))}
        {waiting.length > 0 && <Waiting session={session} messages={waiting} />}
        <TurnEnd session={session} />
      </div>
      {isBehind && (
        <button class="to-end" onClick={follow}>
          To the end
        </button>
      )}
    </div>
  );
}

interface GroupProps {
  session: Session;
  items: Item[];
}

/** Drawn again only if an item came, went or moved: each item draws by itself what changes in it. */
class Group extends Component<GroupProps> {
  override shouldComponentUpdate({ items }: GroupProps): boolean {
    const before = this.props.items;
    return before.length !== items.length || before.some((item, index) => item !== items[index]);
  }

  override render({ session, items }: GroupProps): JSX.Element {
    return (
      <div class="item-group" style={{ "--items": items.length }}>
        {items.map((item) => (
          <article key={item.id} class={`item is-${item.is === "message" ? item.kind : item.is}`} tabIndex={-1}>
            <ItemView session={session} item={item} />
          </article>
        ))}
      </div>
    );
  }
}

function ItemView({ session, item }: { session: Session; item: Item }): JSX.Element {
  switch (item.is) {
    case "call":
      return <CallCard session={session} call={item} />;
    case "remark":
      return <RemarkView remark={item} />;
    case "compaction":
      return <CompactionView compaction={item} />;
    case "message":
      if (item.kind === "user") return <UserMessage message={item} />;
      return item.kind === "thought" ? <Thought message={item} /> : <Reply message={item} />;
  }
}

function UserMessage({ message }: { message: Message }): JSX.Element {
  void message.version.value;
  const [text, setText] = useState(message.text);
  useEffect(() => {
    setText(message.text);
    return message.subscribe(() => setText(message.text));
  }, [message]);
  return (
    <div class="said">
      <span class="hidden">You:</span>
      {text && <p>{pieces(text)}</p>}
      {message.attachments.length > 0 && (
        <div class="attachments">
          {message.attachments.map((block, index) => (
            <Content key={index} block={block} />
          ))}
        </div>
      )}
    </div>
  );
}

function Reply({ message }: { message: Message }): JSX.Element {
  return (
    <>
      <StreamedMarkdown message={message} />
      {!message.isOpen.value && <Copying message={message} />}
    </>
  );
}

/** Thoughts are folded: one line that says that there are some. They are drawn only when somebody looks. */
function Thought({ message }: { message: Message }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="thought" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="think" /> {message.isOpen.value ? "Thinking…" : "Thought"}
      </summary>
      {isOpen && <StreamedMarkdown message={message} />}
    </details>
  );
}

function RemarkView({ remark }: { remark: Remark }): JSX.Element {
  return (
    <div class={`remark is-${remark.severity}`}>
      <span>
        <Words text={remark.title} />
      </span>
      {remark.description && <Markdown text={remark.description} />}
    </div>
  );
}

function CompactionView({ compaction }: { compaction: Compaction }): JSX.Element {
  const { status, text } = compaction.state.value;
  const words: Record<string, string> = {
    in_progress: "Summing up the conversation…",
    completed: "The conversation was summed up for the model",
    failed: "The conversation could not be summed up",
    cancelled: "Summing up was cancelled",
  };
  return text ? (
    <details class="thought">
      <summary>{words[status]}</summary>
      <Markdown text={text} />
    </details>
  ) : (
    <div class="remark">{words[status]}</div>
  );
}

/** Keeps the end in sight while the person reads there, and leaves the place alone while they read elsewhere. */
function useFollowing(scroller: { current: HTMLDivElement | null }, session: Session) {
  const [isBehind, setBehind] = useState(false);
  const follows = useRef(true);
  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(() => {
    follows.current = true;
    toEnd();
    const element = scroller.current!;
    let top = element.scrollTop;
    const scrolled = () => {
      const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < AT_END;
      // Only who scrolls up reads elsewhere: the end also moves away when something is drawn below.
      if (isAtEnd) follows.current = true;
      else if (element.scrollTop < top) follows.current = false;
      top = element.scrollTop;
      setBehind(!follows.current);
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    const grown = new ResizeObserver(() => follows.current && toEnd());
    grown.observe(element);
    grown.observe(element.firstElementChild!);
    return () => {
      element.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, [session]);
  // What comes into sight at the end is drawn only then, and may be higher than it was thought to be: the end is followed.
  const follow = () => {
    follows.current = true;
    scroller.current?.focus({ preventScroll: true }); // the button goes: its focus would be given to the first item, which scrolls there
    setBehind(false);
    toEnd();
  };
  return { isBehind, follow };
}
