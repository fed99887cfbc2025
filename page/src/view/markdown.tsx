// Text of the agent, drawn as it arrives.

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { markdownInto, type MarkdownStream } from "../markdown";
import type { Message } from "../model/transcript";
import { whenNear } from "../near";

/** A message whose text may still grow. Preact never touches what is inside. */
export function StreamedMarkdown({ message }: { message: Message }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const isOpen = message.isOpen.value;
  const stream = useRef<MarkdownStream | null>(null);
  useLayoutEffect(() => {
    const element = root.current!;
    let isFar = false;
    const begin = () => {
      isFar = false;
      element.classList.remove("is-far");
      element.replaceChildren();
      stream.current = markdownInto(element);
      stream.current.write(message.text);
      if (!message.isOpen.value) stream.current.end();
    };
    const off = whenNear(element, (isNear) => {
      if (isNear && isFar) begin();
      if (isNear) off();
    });
    if (message.isOpen.value) begin();
    else {
      // Of a long session most is far away: its text is there to be found, and is laid out when somebody comes near.
      isFar = true;
      element.classList.add("is-far");
      element.textContent = message.text;
    }
    const unsubscribe = message.subscribe((text) => {
      if (stream.current && message.isOpen.value) stream.current.write(text);
      else begin(); // it had ended: what ended cannot grow
    });
    return () => {
      off();
      unsubscribe();
    };
  }, [message]);
  useLayoutEffect(() => {
    if (isOpen) return;
    stream.current?.end();
    stream.current = null;
  }, [message, isOpen]);
  return <div class="prose" ref={root} />;
}

/** Text that is complete. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    root.current!.replaceChildren();
    const stream = markdownInto(root.current!);
    stream.write(text);
    stream.end();
  }, [text]);
  return <div class="prose" ref={root} />;
}
