// Tells when an element comes near to what is seen, so that large things are drawn only then.

type Listener = (isNear: boolean) => void;
const listeners = new WeakMap<Element, Listener>();
const observers = new Map<string, IntersectionObserver>();

/** Calls `listener` whenever the element comes within `margin` (pixels, above and below) of what is seen, or leaves it. */
export function whenNear(element: Element, listener: Listener, margin = 800): () => void {
  const key = `${margin}px 0px`;
  let observer = observers.get(key);
  if (!observer) {
    // The page's talk scrolls in an element of its own, which `rootMargin` alone does not widen.
    const options: IntersectionObserverInit & { scrollMargin: string } = { rootMargin: key, scrollMargin: key };
    observer = new IntersectionObserver((entries) => {
      for (const entry of entries) listeners.get(entry.target)?.(entry.isIntersecting);
    }, options);
    observers.set(key, observer);
  }
  listeners.set(element, listener);
  observer.observe(element);
  return () => {
    listeners.delete(element);
    observer.unobserve(element);
  };
}

/** When the browser has nothing better to do. */
export function whenIdle(work: () => unknown): void {
  if ("requestIdleCallback" in window) requestIdleCallback(work, { timeout: 500 });
  else setTimeout(work, 50);
}
