/** Test setup: all test files run in one process, so each gets modules, a page and storages that no other file has changed. */
import { afterEach, vi } from "vitest";

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
