// Parts of the page that are fetched when they are first needed: also on a machine whose network comes and goes.

const PAUSES_MS = [250, 500, 1000, 2000];
const MOST_TRIES = 40;

interface Fetching {
  /** Nobody needs it any more: it is not tried again. */
  signal?: AbortSignal;
  onFailure?: () => void;
}

/** What `get` imports, tried again while it cannot be fetched; rejected, if it never could be or nobody needs it any more. */
export async function fetched<T>(get: () => Promise<T>, { signal, onFailure }: Fetching = {}): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await get();
    } catch (error) {
      signal?.throwIfAborted();
      onFailure?.();
      if (tries === MOST_TRIES) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSES_MS[tries] ?? 4000));
    signal?.throwIfAborted();
  }
}
