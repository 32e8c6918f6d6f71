/** Test setup: all test files run in one process, so each gets modules, a page and storages that no other file has changed. */
import { afterAll, afterEach, vi } from "vitest";

vi.resetModules();
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});
if ("document" in globalThis) {
  const { cleanup } = await import("@testing-library/react");
  const { documentElement: page } = document;
  for (const name of page.getAttributeNames()) page.removeAttribute(name);
  document.body.replaceChildren();
  localStorage.clear();
  sessionStorage.clear();
  afterEach(cleanup);
}

// The checks run beside the tests, on a busy machine: one second, the default, is not always enough.
const { waitFor } = vi;
vi.waitFor = (callback, options = 20_000) => waitFor(callback, options);
afterAll(() => void (vi.waitFor = waitFor));
