/** Storage: small values in localStorage, or in sessionStorage if they are of one tab. Where the browser refuses it (private mode, blocked cookies), they last until the page is closed. */

type Place = "browser" | "tab";
const fallback = new Map<string, string>();
const storageOf = (place: Place): Storage => (place === "tab" ? sessionStorage : localStorage);

export function readStored(key: string, place: Place = "browser"): string | null {
  try {
    return storageOf(place).getItem(`agiraph.${key}`);
  } catch {
    return fallback.get(key) ?? null;
  }
}

export function writeStored(key: string, value: string | null, place: Place = "browser"): void {
  try {
    if (value === null) storageOf(place).removeItem(`agiraph.${key}`);
    else storageOf(place).setItem(`agiraph.${key}`, value);
  } catch {
    if (value === null) fallback.delete(key);
    else fallback.set(key, value);
  }
}
