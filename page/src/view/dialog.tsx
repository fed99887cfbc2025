// A dialog over the page: the browser's own, which keeps the focus inside, closes with Escape and gives the focus back.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { giveHeldKeys } from "./dialogs";

interface DialogProps {
  label: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ label, class: kind, onClose, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    const before = document.activeElement;
    element.showModal();
    void giveHeldKeys();
    return () => {
      element.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const outside = (event: MouseEvent) => event.target === dialog.current && onClose();
  return (
    <dialog
      ref={dialog}
      class={kind}
      aria-label={label}
      onClick={outside}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      {children}
    </dialog>
  );
}
