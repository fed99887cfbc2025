// What this browser remembers, by key. A browser that refuses storage, or has none left, forgets: nothing else fails.

export function recall<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`crow.${key}`);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** False if the browser did not take it. */
export function remember(key: string, value: unknown): boolean {
  try {
    if (value === null || value === "") localStorage.removeItem(`crow.${key}`);
    else localStorage.setItem(`crow.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false; // nothing to do about it: the value holds until the page is closed
  }
}
