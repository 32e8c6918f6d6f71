/** Test setup: all test files run in one process, so each gets modules, a page and a storage that no other file has changed. */
import { afterEach, vi } from "vitest";

vi.resetModules();
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
if ("document" in globalThis) {
  const { cleanup } = await import("@testing-library/react");
  document.body.replaceChildren();
  localStorage.clear();
  afterEach(cleanup);
}
