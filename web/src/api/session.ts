/**
 * Session: the key, the part of the session's secret that only pages of this origin have. Browsers send the other part, a
 * cookie, to every port of this host; what is stored belongs to one port. Every request carries both.
 */
import { readStored, writeStored } from "@/lib/storage";

const STORED = "key";
const IN_ADDRESS = /^#key=([\w.~-]+)$/;

let isLinkRefused = false;
/** Whether this page was opened with a sign-in link that no longer works. */
export const cameWithUsedLink = (): boolean => isLinkRefused;

/** Store the key that a sign-in link has put into the address, and take it out of the address and the history. */
export function takeKeyFromAddress(): void {
  const found = IN_ADDRESS.exec(location.hash);
  isLinkRefused = location.hash === "#used-link";
  if (!found && !isLinkRefused) return;
  if (found) writeStored(STORED, found[1]!);
  history.replaceState(history.state, "", location.pathname + location.search);
}

// Read for each request: another tab may have signed in again.
const sessionKey = (): string => readStored(STORED) ?? "";

/** Call the listener when another tab has signed in. */
export function onSignedInElsewhere(listener: () => void): void {
  addEventListener("storage", ({ key, newValue }) => key === `agiraph.${STORED}` && newValue && listener());
}

export const keyHeaders = (): Record<string, string> => ({ "X-Agiraph-Key": sessionKey() });

/** Fetch an address of the API. */
export const fetchApi = (path: string): Promise<Response> => fetch(path, { headers: keyHeaders() });

/** Return the subprotocols of a WebSocket, which cannot have a header. The server answers with the first. */
export const subprotocols = (): string[] => ["agiraph", ...(sessionKey() ? [`agiraph.key.${sessionKey()}`] : [])];

/** Return an address of the API for a link or an image, which cannot have a header. */
export const withKey = (address: string): string => (sessionKey() ? withQuery(address, { key: sessionKey() }) : address);

export const withQuery = (address: string, values: Record<string, string>): string =>
  `${address}${address.includes("?") ? "&" : "?"}${new URLSearchParams(values).toString()}`;

if (globalThis.location) takeKeyFromAddress();
