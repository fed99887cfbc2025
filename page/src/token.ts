// How this page is known to Crow: by a link that is good once, then by a token of its own.
//
// Both go over the WebSocket's subprotocol. Neither is ever in a cookie (those are sent to other ports of this machine too)
// nor in an address that could be kept: the link is in the fragment, and removed from it before anything else.
//
// While no Crow runs, any program may get its port. So whoever answers there has to prove that it knows the token's hash
// before it is shown the token; and after a wrong proof the token is in this page's memory alone, as what is stored could be
// read by the page that the other program would serve.

const KEY = "crow.token";
const LONGEST_PROOF_MS = 5000;
let link: string | null = null;
/** The token, while it is not stored. */
let withheld: string | null = null;

/** Who answers at this address does not know this page. */
export class NotKnown extends Error {}

/** Take the one-time link out of the address, if there is one; `isNeeded` says whether it is to be used. */
export function takeLink(isNeeded = true): boolean {
  const found = /^#link=([\w.~-]+)$/.exec(location.hash);
  if (!found) return false;
  if (isNeeded) link = found[1] ?? null;
  history.replaceState(null, "", location.pathname);
  return true;
}

/** The subprotocol that says who we are; nothing if this page was opened without a link. `NotKnown` if it must not be shown. */
export async function credential(signal: AbortSignal): Promise<string | null> {
  if (link) return `crow.link.${link}`;
  const token = withheld ?? stored();
  if (!token) return null;
  if (!(await isProved(token, signal))) {
    withheld = token;
    store(null);
    throw new NotKnown();
  }
  return `crow.token.${token}`;
}

/** Crow knows this page. If it came by the link, that is used up, and Crow has given it a token. */
export function keepToken(given: string | undefined): void {
  const token = given ?? withheld;
  link = withheld = null;
  if (token && !store(token)) withheld = token;
}

/** The token of this tab. A browser that refuses storage, or has none left, has none: then this page's memory keeps it. */
function stored(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** False if the browser did not take it. */
function store(token: string | null): boolean {
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
    return true;
  } catch {
    return false;
  }
}

/** Why Crow refuses this page: it was opened by no link, by one that is used up or too old, or its token was forgotten. */
export type Refusal = "nothing" | "link" | "token";

export function whyRefused(): Refusal {
  if (link) return "link";
  return (withheld ?? stored()) ? "token" : "nothing";
}

/** Crow does not know the link. A token that is kept from before may still be good. */
export function dropLink(): boolean {
  const had = link !== null;
  link = null;
  return had && (withheld ?? stored()) !== null;
}

async function isProved(token: string, signal: AbortSignal): Promise<boolean> {
  const hash = await crypto.subtle.digest("SHA-256", utf8(token));
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
  const asked = new URLSearchParams({ id: hex(hash).slice(0, 8), nonce, origin: location.origin });
  const answer = await fetch(`/proof?${asked}`, {
    cache: "no-store",
    redirect: "error",
    signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_PROOF_MS)]),
  });
  // A proxy says so while there is no Crow behind it. That is no wrong proof.
  if (answer.status >= 500) throw new Error("nobody is there");
  const key = await crypto.subtle.importKey("raw", hash, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return (await answer.text()) === hex(await crypto.subtle.sign("HMAC", key, utf8(`${location.origin} ${nonce}`)));
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
