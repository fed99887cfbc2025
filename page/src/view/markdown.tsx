// Text of the agent, drawn as it arrives.

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { fetched } from "../fetched";
import type { markdownInto, MarkdownStream } from "../markdown/stream";
import type { Message } from "../model/transcript";
import { whenNear } from "../near";

/** Draws Markdown. It is fetched at the start of the page, but after it: what is there before is shown as it was written. */
let drawInto: typeof markdownInto | undefined;
const drawing = fetched(() => import("../markdown/stream")).then((module) => {
  drawInto = module.markdownInto;
});

/** Shows text as it was written: it is there to be found, and takes no time. */
function showPlain(element: HTMLElement, text: string): void {
  element.classList.add("is-far");
  element.textContent = text;
}

/** Draws `text` in the place of what is in the element; or shows it, and calls `again` once it can be drawn. */
function draw(element: HTMLElement, text: string, again: () => void): MarkdownStream | null {
  element.ariaBusy = drawInto ? null : "true"; // so that nobody answers a question that is not drawn
  if (!drawInto) {
    showPlain(element, text);
    void drawing.then(again);
    return null;
  }
  element.classList.remove("is-far");
  element.replaceChildren();
  const stream = drawInto(element);
  stream.write(text);
  return stream;
}

/** A message whose text may still grow. Preact never touches what is inside. */
export function StreamedMarkdown({ message }: { message: Message }): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const isOpen = message.isOpen.value;
  const stream = useRef<MarkdownStream | null>(null);
  useLayoutEffect(() => {
    const element = root.current!;
    let isFar = false;
    let isGone = false;
    const begin = () => {
      isFar = false;
      stream.current?.end();
      stream.current = isGone ? null : draw(element, message.text, begin);
      if (!message.isOpen.value) stream.current?.end();
    };
    const off = whenNear(element, (isNear) => {
      if (isNear && isFar) begin();
      if (isNear) off();
    });
    if (message.isOpen.value) begin();
    else {
      // Of a long session most is far away: its text is laid out when somebody comes near.
      isFar = true;
      showPlain(element, message.text);
    }
    const unsubscribe = message.subscribe((text) => {
      if (stream.current && message.isOpen.value) stream.current.write(text);
      else begin(); // it had ended: what ended cannot grow
    });
    return () => {
      isGone = true;
      off();
      unsubscribe();
      stream.current?.end();
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
    let isGone = false;
    const begin = () => {
      if (!isGone) draw(root.current!, text, begin)?.end();
    };
    begin();
    return () => {
      isGone = true;
    };
  }, [text]);
  return <div class="prose" ref={root} />;
}
