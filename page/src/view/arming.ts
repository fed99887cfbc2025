// When a question takes an answer: once it is drawn and stands still, and by a press that began then.
//
// A key or a tap that was meant for something else must not be an answer. So a question that has just come takes none, nor does one
// that is not drawn to its end, nor a button that has just moved under the pointer. What has once begun on a button is for
// that button, whatever moves meanwhile.

import type { ButtonHTMLAttributes } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Stillness } from "./stillness";

export interface Arming {
  /** Whether it takes answers: it has been seen. */
  isArmed: boolean;
  /** Whether its buttons stand where they stood. Keys do not care. */
  isStill: boolean;
  /** What makes a button an answer; `isOff`: for a reason of its own. */
  button(isOff: boolean, onAnswer: () => void): ButtonHTMLAttributes<HTMLButtonElement>;
}

interface Press {
  on: Element;
  at: DOMRect;
}

/** `card` is the whole question; `canAnswer` is false while an answer would not arrive. */
export function useArming(card: { current: HTMLElement | null }, canAnswer: boolean): Arming {
  const [, redraw] = useState({});
  const stillness = useRef<Stillness | null>(null);
  const press = useRef<Press | null>(null);
  useLayoutEffect(() => {
    const watched = (stillness.current = new Stillness(card.current!, () => redraw({})));
    return () => watched.end();
  }, []);
  const { isRead = false, isStill = false } = stillness.current ?? {};
  const isArmed = isRead && canAnswer;
  const button = (isOff: boolean, onAnswer: () => void): ButtonHTMLAttributes<HTMLButtonElement> => ({
    "aria-disabled": isOff || !isArmed || !isStill,
    onPointerDown: (event) => {
      press.current = null;
      if (event.button !== 0 || !isArmed || !stillness.current?.check()) return;
      press.current = { on: event.currentTarget, at: event.currentTarget.getBoundingClientRect() };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onMouseDown: (event) => event.preventDefault(), // who writes goes on writing
    onClick: (event) => {
      event.preventDefault();
      if (isOff || !isArmed) return;
      // A click without a pointer is a key's.
      if (event.detail && !(press.current?.on === event.currentTarget && isWithin(event, press.current.at))) return;
      press.current = null;
      onAnswer();
    },
  });
  return { isArmed, isStill, button };
}

function isWithin({ clientX, clientY }: MouseEvent, box: DOMRect): boolean {
  return clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom;
}
