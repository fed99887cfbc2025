// Text of the agent, drawn as it arrives.

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { markdownInto, type MarkdownStream } from "../markdown";
import type { Message } from "../model/transcript";

/** A message whose text may still grow. Preact never touches what is inside. */
export function StreamedMarkdown({ message }: { message: Message }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const isOpen = message.isOpen.value;
  const stream = useRef<MarkdownStream | null>(null);
  useLayoutEffect(() => {
    const element = root.current!;
    const begin = () => {
      element.replaceChildren();
      stream.current = markdownInto(element);
      stream.current.write(message.text);
    };
    begin();
    return message.subscribe((text) => {
      if (stream.current) stream.current.write(text);
      else begin(); // it had ended: what ended cannot grow
    });
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
