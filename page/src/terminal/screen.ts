// One xterm.js terminal. What a command writes can colour and move text in it, and do nothing else: no links, no
// clipboard, no title, no answers to questions about the terminal.

import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";

const MOST_ROWS = 24;
/** Rows of a command that is typed into, unless it draws the whole screen. */
const TYPING_ROWS = 10;
const SCROLLBACK = 5000;
/** Characters that a terminal is given at once: it keeps no more lines than that. */
export const MOST_TEXT = 512 * 1024;

/** Codes of operating system commands that are swallowed: titles, colours of the theme, links, clipboard, notes. */
const SWALLOWED = [0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 17, 19, 52, 104, 105, 110, 111, 112, 113, 114, 117, 119, 777, 1337];

export class Screen {
  private readonly terminal: Terminal;
  private readonly fitting = new FitAddon();
  private pending = "";
  private frame = 0;
  private isGone = false;
  private canType = false;

  constructor(
    private readonly host: HTMLElement,
    label: string,
    private readonly onType: (data: string) => void,
    private readonly onSize: (columns: number, rows: number) => void,
    private readonly onLeave: () => void,
  ) {
    this.terminal = new Terminal({
      allowProposedApi: false,
      convertEol: true, // Crow's terminal adds no carriage returns
      cursorBlink: false,
      cursorInactiveStyle: "none",
      disableStdin: true,
      drawBoldTextInBrightColors: false,
      fontFamily: getComputedStyle(host).fontFamily,
      fontSize: 12.5,
      lineHeight: 1.25,
      minimumContrastRatio: 4.5, // also for text that a program hides in its background
      rows: 1,
      screenReaderMode: false,
      scrollback: SCROLLBACK,
      theme: themeOf(host),
    });
    this.restrict();
    this.terminal.loadAddon(this.fitting);
    withNonce(() => this.terminal.open(host));
    this.terminal.textarea?.setAttribute("aria-label", label);
    this.type(false);
    this.fit();
  }

  /** Takes in output; it is drawn with the next frame. */
  write(data: string): void {
    this.pending += data;
    if (this.pending.length > MOST_TEXT) this.pending = lastOf(this.pending);
    if (!this.frame) this.frame = requestAnimationFrame(() => this.flush());
  }

  /** Whether a person can type. */
  type(canType: boolean): void {
    this.canType = canType;
    this.terminal.options.disableStdin = !canType;
    // Who is typed into is told of the size and draws its line again; of any other, a narrower window would cut the last line.
    this.terminal.options.reflowCursorLine = !canType;
    const { textarea } = this.terminal;
    if (textarea) textarea.tabIndex = canType ? 0 : -1;
    this.terminal.write(canType ? "\x1b[?25h" : "\x1b[?25l");
    this.fit();
  }

  fit(): void {
    const columns = this.fitting.proposeDimensions()?.cols;
    if (!columns || this.isGone) return;
    if (columns !== this.terminal.cols) this.terminal.resize(columns, this.terminal.rows);
    const rows = this.rows(); // lines that are wrapped anew may need more of them
    if (rows !== this.terminal.rows) this.terminal.resize(columns, rows);
    if (this.canType) this.onSize(columns, rows);
  }

  recolour(): void {
    this.terminal.options.theme = themeOf(this.host);
  }

  end(): void {
    this.isGone = true;
    cancelAnimationFrame(this.frame);
    this.terminal.dispose();
  }

  private rows(): number {
    const { active } = this.terminal.buffer;
    if (active.type === "alternate") return MOST_ROWS;
    const least = this.canType ? TYPING_ROWS : 1;
    return Math.max(least, Math.min(MOST_ROWS, Math.max(active.baseY + active.cursorY + 1, this.terminal.rows)));
  }

  private flush(): void {
    this.frame = 0;
    // The end of the last line is kept back, so that no empty row stands below it.
    const isHeld = this.pending.endsWith("\n") && !this.canType;
    const data = isHeld ? this.pending.slice(0, -1) : this.pending;
    this.pending = isHeld ? "\n" : "";
    if (this.isGone || !data) return;
    this.terminal.write(data, () => {
      if (!this.isGone && this.rows() !== this.terminal.rows) this.fit();
    });
  }

  private restrict(): void {
    const { parser } = this.terminal;
    for (const code of SWALLOWED) parser.registerOscHandler(code, () => true);
    // Questions about the terminal: an answer would be typed into the command, in the person's name.
    for (const final of ["c", "n"]) {
      for (const prefix of ["", ">", "=", "?"]) parser.registerCsiHandler(prefix ? { prefix, final } : { final }, () => true);
    }
    for (const prefix of ["", "?"]) parser.registerCsiHandler({ ...(prefix ? { prefix } : {}), intermediates: "$", final: "p" }, () => true);
    parser.registerCsiHandler({ final: "t" }, () => true);
    parser.registerCsiHandler({ prefix: ">", final: "q" }, () => true);
    parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
    parser.registerDcsHandler({ intermediates: "+", final: "q" }, () => true);
    this.terminal.onData((data) => {
      if (this.canType) this.onType(data);
    });
    this.terminal.attachCustomKeyEventHandler((event) => {
      if (event.key !== "Escape" || !event.shiftKey) return this.canType;
      if (event.type === "keydown") this.onLeave();
      return false;
    });
  }
}

/** The end of a text, from the beginning of a line. */
export function lastOf(text: string): string {
  const start = text.indexOf("\n", text.length - MOST_TEXT / 2) + 1;
  return text.slice(start);
}

/** Styles that xterm adds when it opens get the nonce, without which the page's policy refuses them. */
function withNonce(open: () => void): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="crow-nonce"]')?.content ?? "";
  const original = document.createElement;
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = original.call(document, name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  }) as typeof original;
  try {
    open();
  } finally {
    document.createElement = original;
  }
}

// xterm gives spans their colours with a `style` attribute, which the policy refuses; the same by the CSSOM is allowed.
HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** The colours of the page, resolved: xterm knows no custom properties. */
function themeOf(host: HTMLElement): ITheme {
  const probe = document.createElement("span");
  host.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme: Record<string, string> = {
    background: colour("--term-bg"),
    foreground: colour("--term-fg"),
    cursor: colour("--term-fg"),
    cursorAccent: colour("--term-bg"),
    selectionBackground: colour("--term-selection"),
  };
  NAMES.forEach((name, index) => {
    theme[name] = colour(`--ansi-${index}`);
    theme[`bright${name[0]?.toUpperCase()}${name.slice(1)}`] = colour(`--ansi-${index + 8}`);
  });
  probe.remove();
  return theme as ITheme;
}
