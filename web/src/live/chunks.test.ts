import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { lazyChunk, loadChunk, retryChunks, setServerAway, useChunks } from "@/live/chunks";
import { writeStored } from "@/lib/storage";
import { addUnsavedCheck } from "@/live/unsaved";

const SOURCES = fileURLToPath(new URL("..", import.meta.url));
const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."));
const importing = (pattern: RegExp) => sources.filter((name) => pattern.test(readFileSync(join(SOURCES, name), "utf8")));

/** A server that answers, and a page that counts its reloads. */
function stubPage() {
  const reload = vi.fn();
  vi.stubGlobal("location", { reload });
  vi.stubGlobal("fetch", async () => new Response());
  writeStored("reloaded-at", null);
  return reload;
}

async function failing(): Promise<never> {
  throw new Error("Failed to fetch dynamically imported module");
}

describe("chunks", () => {
  it("are not imported while the server is away, and are imported once it is back", async () => {
    let imports = 0;
    setServerAway(true);
    const loading = loadChunk(async () => ++imports);
    await Promise.resolve();
    expect([imports, useChunks.getState().waiting]).toEqual([0, 1]);
    setServerAway(false);
    expect(await loading).toBe(1);
    expect(useChunks.getState()).toEqual({ waiting: 0, hasFailed: false });
  });

  it("that fail to load are reported, and tried again when the person asks for it", async () => {
    let imports = 0;
    const loading = loadChunk(async () => {
      if (++imports === 1) throw new Error("Failed to fetch dynamically imported module");
      return imports;
    });
    await expect.poll(() => useChunks.getState()).toEqual({ waiting: 1, hasFailed: true });
    retryChunks();
    expect(await loading).toBe(2);
    expect(useChunks.getState().hasFailed).toBe(false);
  });

  it("reload the page if they fail to load, unless something is unsaved", async () => {
    const reload = stubPage();
    const save = addUnsavedCheck(() => true);
    let isBack = false;
    const kept = loadChunk(() => (isBack ? Promise.resolve("loaded") : failing()));
    await expect.poll(() => useChunks.getState()).toEqual({ waiting: 1, hasFailed: true });
    expect(reload).toHaveBeenCalledTimes(0);
    isBack = true;
    retryChunks();
    expect(await kept).toBe("loaded");
    save();
    void loadChunk(failing);
    await expect.poll(() => reload.mock.calls.length).toBe(1);
  });

  it("that are loaded ahead neither reload the page nor report a failure", async () => {
    const reload = stubPage();
    await lazyChunk(failing).preload();
    expect([reload.mock.calls.length, useChunks.getState()]).toEqual([0, { waiting: 0, hasFailed: false }]);
  });

  it("are loaded through `lazyChunk` everywhere: React's own `lazy` keeps a failure for good", () => {
    expect(importing(/\blazy\b[^\n]*from "react"|lazyRouteComponent/)).toEqual(["live/chunks.ts"]);
  });

  it("hold the libraries that the first screen does not need", () => {
    expect(importing(/^import (?!type).*from "sonner"/m)).toEqual(["ui/Toaster.tsx"]);
    expect(importing(/^import (?!type).*from "radix-ui"/m).sort()).toEqual([
      "shell/CommandPalette.tsx",
      "ui/overlays.tsx",
      "views/research/Report.tsx",
    ]);
  });
});
