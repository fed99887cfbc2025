// Watches whether a question was there for long enough to be read, and whether its buttons stand where they stood.

/** So long a question stands still before it takes an answer. */
const STILL_MS = 350;
/** What answers: it must not move under the pointer. */
const ANSWERS = ".answer, .skip";

type Timer = ReturnType<typeof setTimeout> | undefined;

export class Stillness {
  /** Whether it was there for long enough to be read. */
  isRead = false;
  /** Whether the answers stand where they stood. */
  isStill = false;
  private place = "";
  private untilStill: Timer;
  private untilRead: Timer;
  private readonly unwatch: () => void;

  /** `onChange` is called whenever one of both changes for `card`. */
  constructor(
    private readonly card: HTMLElement,
    private readonly onChange: () => void,
  ) {
    this.unwatch = whenLaidOut(card, () => this.check());
  }

  /** Looks where the answers are now; whether they have stood there for long enough. */
  check(): boolean {
    const place = placeOf(this.card);
    if (place === this.place) return this.isStill;
    this.place = place;
    clearTimeout(this.untilStill);
    if (this.isStill) this.set("isStill", false);
    if (place) this.startTimers();
    else this.forgetReading();
    return false;
  }

  end(): void {
    this.unwatch();
    this.place = "";
    clearTimeout(this.untilStill);
    this.forgetReading();
  }

  /** A page that nobody sees draws no frame, and so arms nothing. What never stands still can be read all the same. */
  private startTimers(): void {
    requestAnimationFrame(() => {
      if (!this.place) return;
      clearTimeout(this.untilStill);
      this.untilStill = setTimeout(() => this.set("isStill", true), STILL_MS);
      this.untilRead ??= setTimeout(() => this.set("isRead", true), STILL_MS);
    });
  }

  /** Something of it is still to be drawn: who has read it has not read that. */
  private forgetReading(): void {
    clearTimeout(this.untilRead);
    this.untilRead = undefined;
  }

  private set(what: "isRead" | "isStill", is: boolean): void {
    this[what] = is;
    this.onChange();
  }
}

/** Where its answers are; empty while it is not shown, or something of it is still to be drawn. Who scrolls knows that they move. */
function placeOf(card: HTMLElement): string {
  if (!card.checkVisibility({ visibilityProperty: true }) || card.querySelector('[aria-busy="true"]')) return "";
  let scrolled = 0;
  for (let one: HTMLElement | null = card; one; one = one.parentElement) scrolled += one.scrollTop;
  const places = [...card.querySelectorAll(ANSWERS)].map((one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return [left, top + scrolled, width, height].map(Math.round).join(" ");
  });
  return places.join() || "nothing";
}

/** Calls `check` before each frame in which the card may have moved: it, something in it or something beside it has another size. */
function whenLaidOut(card: HTMLElement, check: () => void): () => void {
  const around = card.parentElement!;
  const sizes = new ResizeObserver(check);
  const observe = () => {
    sizes.disconnect();
    for (const one of [document.body, around, ...around.children, ...card.querySelectorAll(ANSWERS)]) sizes.observe(one);
    check();
  };
  const changes = new MutationObserver(observe);
  changes.observe(around, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-busy"] });
  observe();
  return () => {
    sizes.disconnect();
    changes.disconnect();
  };
}
