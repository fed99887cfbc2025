// Copying what the agent said: a reply as it was written, and each block of code in it.

import { type JSX, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CopyingProps } from "../widgets";
import { Icon } from "./icons";

/** Milliseconds for which it is said that something was copied. */
const SAID_MS = 1500;

export function Copying({ message }: CopyingProps): JSX.Element {
  const [isDone, setDone] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => withCopyButtons(button.current!.closest(".item")!.querySelector(".prose")!), []);
  useEffect(() => {
    const timer = isDone && setTimeout(() => setDone(false), SAID_MS);
    return () => clearTimeout(timer || undefined);
  }, [isDone]);
  return (
    <button
      ref={button}
      class="bare copy-reply"
      aria-label={isDone ? "Copied" : "Copy this reply"}
      title="Copy this reply"
      onClick={() => void copy(message.text).then(setDone)}
    >
      <Icon name={isDone ? "check" : "copy"} />
    </button>
  );
}

/** Gives each block of code a button, also those that are drawn later, when somebody comes near. */
function withCopyButtons(prose: Element): () => void {
  const add = () => {
    for (const block of prose.querySelectorAll("pre:not(:has(> button))")) block.append(buttonFor(block));
  };
  const drawn = new MutationObserver(add);
  drawn.observe(prose, { childList: true, subtree: true });
  add();
  return () => drawn.disconnect();
}

/** Without words in it, which would be selected and copied with the code. */
function buttonFor(block: Element): HTMLButtonElement {
  const button = document.createElement("button");
  button.className = "copy-code";
  button.title = "Copy";
  const show = (isDone: boolean) => {
    button.setAttribute("aria-label", isDone ? "Copied" : "Copy this code");
    render(<Icon name={isDone ? "check" : "copy"} />, button);
  };
  button.onclick = async () => {
    if (!(await copy(block.querySelector("code")?.textContent ?? ""))) return;
    show(true);
    setTimeout(() => show(false), SAID_MS);
  };
  show(false);
  return button;
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // the browser does not let it, and says so by itself
  }
}
