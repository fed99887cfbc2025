// Keeps the focus in sight: when what has it goes away, what is near takes it, so that keys and screen readers go on from there.
// Of an element around it, `data-home` marks what takes the focus before any neighbour: a question, the composer, the talk.

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex]";

/** An element with the focus in it, and what stood beside that element then. */
interface Step {
  at: Element;
  next: Element | null;
  before: Element | null;
}

/** From what has the focus up to the page's root. */
let path: Step[] = [];

export function startFocus(): void {
  document.addEventListener("focusin", ({ target }) => {
    path = [];
    for (let at = target as Element | null; at && at !== document.body; at = at.parentElement) {
      path.push({ at, next: at.nextElementSibling, before: at.previousElementSibling });
    }
  });
  // Who clicks where nothing takes the focus has put it there.
  document.addEventListener("mouseup", () => document.activeElement === document.body && (path = []));
  document.addEventListener("focusout", ({ relatedTarget }) => relatedTarget ?? setTimeout(rescue));
  new MutationObserver(rescue).observe(document.body, { childList: true, subtree: true });
}

function rescue(): void {
  if (document.activeElement !== document.body || !path[0] || isThere(path[0].at)) return;
  const held = path;
  path = []; // once: what cannot be found now is not looked for with every change
  for (let index = 1; index < held.length; index++) {
    const { at } = held[index]!;
    const { next, before } = held[index - 1]!;
    if (!isThere(at)) continue;
    const near = [at.querySelector("[data-home]"), firstIn(next), firstIn(before)];
    const found = near.find((one): one is HTMLElement => one instanceof HTMLElement && isThere(one));
    if (found) return found.focus();
  }
}

function firstIn(element: Element | null): Element | null {
  if (!element?.isConnected) return null;
  return element.matches(FOCUSABLE) ? element : ([...element.querySelectorAll(FOCUSABLE)].find(isThere) ?? null);
}

function isThere(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled") && element.checkVisibility({ visibilityProperty: true });
}
