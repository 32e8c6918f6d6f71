/** Storage: small values in localStorage. Where the browser refuses it (private mode, blocked cookies), they last until the page is closed. */

const fallback = new Map<string, string>();

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(`agiraph.${key}`);
  } catch {
    return fallback.get(key) ?? null;
  }
}

export function writeStored(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`agiraph.${key}`);
    else localStorage.setItem(`agiraph.${key}`, value);
  } catch {
    if (value === null) fallback.delete(key);
    else fallback.set(key, value);
  }
}
