/**
 * Chunks: the parts of the page that are loaded when they are needed, also while the server is away.
 *
 * Browsers remember a failed import: the next import of the same file fails at once, until the page is reloaded. So no
 * import is tried while the server is known to be away, unless all files are in the browser's cache already.
 */
import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import { create } from "zustand";
import { readStored, writeStored } from "@/lib/storage";
import { hasUnsaved } from "@/live/unsaved";

interface ChunkState {
  /** Parts of the page that are loaded when the server is back. */
  waiting: number;
  /** Whether a part could not be loaded although it was tried. */
  hasFailed: boolean;
}

export const useChunks = create<ChunkState>(() => ({ waiting: 0, hasFailed: false }));

/** A second reload within this time would not help either. */
const RELOAD_PAUSE_MS = 30_000;
let isServerAway = false;
let areCached = false;
const waiting = new Set<() => void>();

/** Tell whether the server is away. When it is back, everything that waits is loaded. */
export function setServerAway(isAway: boolean): void {
  // The service worker that opened this page has all of its files.
  areCached ||= isAway && !!globalThis.navigator?.serviceWorker?.controller;
  isServerAway = isAway;
  if (!isAway) retryChunks();
}

/** Try again to load everything that waits. */
export function retryChunks(): void {
  const due = [...waiting];
  waiting.clear();
  for (const proceed of due) proceed();
}

/** Import a chunk. While the server is away, wait for it; if the import failed, load the page anew if nothing is lost by it, or wait for a retry. */
export async function loadChunk<T>(load: () => Promise<T>): Promise<T> {
  for (;;) {
    if (isServerAway && !areCached) await untilRetry();
    try {
      const loaded = await load();
      useChunks.setState({ hasFailed: false });
      return loaded;
    } catch {
      // The server runs another version, or was away for a moment. Unsent words and the page's address survive a reload; attached files and changed forms do not.
      if (await canReload()) {
        location.reload();
        return await new Promise<T>(() => {});
      }
      useChunks.setState({ hasFailed: true });
      await untilRetry();
    }
  }
}

async function untilRetry(): Promise<void> {
  useChunks.setState((state) => ({ waiting: state.waiting + 1 }));
  await new Promise<void>((resolve) => waiting.add(resolve));
  useChunks.setState((state) => ({ waiting: state.waiting - 1 }));
}

/** Whether the page may reload and would come back: the server answers, the last reload for this reason was not just now, and nothing is unsaved. */
async function canReload(): Promise<boolean> {
  if (Date.now() - Number(readStored("reloaded-at") ?? 0) < RELOAD_PAUSE_MS) return false;
  try {
    if (!(await fetch("/", { method: "HEAD", cache: "no-store" })).ok) return false;
  } catch {
    return false;
  }
  if (hasUnsaved()) return false;
  writeStored("reloaded-at", String(Date.now()));
  return true;
}

/** The bound that React's own `lazy` has. */
type AnyComponent = ComponentType<any>;
export type ChunkComponent<T extends AnyComponent> = LazyExoticComponent<T> & {
  preload: () => Promise<void>;
  /** Whether the chunk is there or can be loaded now. */
  canLoad: () => boolean;
};

/** As React's `lazy`, for a chunk that may be asked for while the server is away. The router calls `preload` when the person points at a link: if that fails, nothing happens until the screen is opened. */
export function lazyChunk<T extends AnyComponent>(load: () => Promise<{ default: T }>): ChunkComponent<T> {
  let loading: Promise<{ default: T }> | undefined;
  let isLoaded = false;
  const loadAndNote = async () => {
    const loaded = await load();
    isLoaded = true;
    return loaded;
  };
  const once = () => (loading ??= loadChunk(loadAndNote));
  const preload = async () => {
    if (isServerAway || loading) return;
    try {
      const loaded = await loadAndNote();
      loading ??= Promise.resolve(loaded);
    } catch {
      // The screen itself tries again.
    }
  };
  return Object.assign(lazy(once), { preload, canLoad: () => isLoaded || areCached || !isServerAway });
}

/** What the page needs besides its chunks. */
const OTHER_FILES = ["/", "/theme.js", "/icon.svg"];

/** Put all files of the page into a cache, one after the other, so that every screen opens, and the page reloads, while the server is away. */
export async function cacheChunks(): Promise<void> {
  const connection = (navigator as { connection?: { saveData?: boolean } }).connection;
  if (connection?.saveData || !import.meta.env.PROD) return;
  try {
    const cache = await caches.open("page");
    const chunks = (await (await fetch("/chunks.json")).json()) as string[];
    for (const file of chunks) if (!(await cache.match(file))) await putInto(cache, file);
    areCached = true;
    for (const file of OTHER_FILES) await putInto(cache, file);
    await navigator.serviceWorker.register(workerAddress());
    const needed = [...chunks, ...OTHER_FILES];
    for (const old of await cache.keys()) if (!needed.includes(new URL(old.url).pathname)) await cache.delete(old);
  } catch {
    // The server is away: parts that are not cached are loaded when it is back.
  }
}

async function putInto(cache: Cache, file: string): Promise<void> {
  await untilIdle();
  await cache.put(file, await fetch(file, { priority: "low" }));
}

/** The page's policy lets scripts come from nowhere else: the one policy of trusted types knows one address. */
function workerAddress(): string {
  const types = (globalThis as { trustedTypes?: { createPolicy: (name: string, rules: object) => { createScriptURL: (given: string) => string } } }).trustedTypes;
  return types?.createPolicy("service-worker", { createScriptURL: () => "/sw.js" }).createScriptURL("") ?? "/sw.js";
}

const untilIdle = (): Promise<void> => new Promise((resolve) => ("requestIdleCallback" in window ? requestIdleCallback(() => resolve(), { timeout: 2_000 }) : setTimeout(resolve, 50)));
