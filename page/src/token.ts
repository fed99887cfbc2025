// How this page is known to Crow: by a link that is good once, then by a token of its own.
//
// Both go over the WebSocket's subprotocol. Neither is ever in a cookie (those are sent to other ports of this machine too)
// nor in an address that could be kept: the link is in the fragment, and removed from it before anything else.

const KEY = "crow.token";
let link: string | null = null;

/** Take the one-time link out of the address, if there is one. */
export function takeLink(): void {
  const found = /^#link=([\w.~-]+)$/.exec(location.hash);
  if (!found) return;
  link = found[1] ?? null;
  history.replaceState(null, "", location.pathname);
}

/** The subprotocol that says who we are; nothing if this page was opened without a link. */
export function credential(): string | null {
  if (link) return `crow.link.${link}`;
  const token = sessionStorage.getItem(KEY);
  return token ? `crow.token.${token}` : null;
}

/** Crow has given this page a token: the link is used up. */
export function keepToken(token: string): void {
  link = null;
  sessionStorage.setItem(KEY, token);
}

/** Crow does not know the link. A token that is kept from before may still be good. */
export function dropLink(): boolean {
  const had = link !== null;
  link = null;
  return had && sessionStorage.getItem(KEY) !== null;
}
