// Paths, as they are shown.

/** A path without the session's folder, if it lies in it. */
export function relative(path: string, cwd: string): string {
  return path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

export function lastPart(path: string): string {
  return path.split("/").findLast(Boolean) || path;
}

/** The last part of an address, as a person would write it. */
export function nameInAddress(uri: string): string {
  const name = lastPart(uri);
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // a percent sign that means itself
  }
}
