import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { loadChunk, retryChunks, setServerAway, useChunks } from "@/live/chunks";

const SOURCES = fileURLToPath(new URL("..", import.meta.url));
const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."));
const importing = (pattern: RegExp) => sources.filter((name) => pattern.test(readFileSync(join(SOURCES, name), "utf8")));

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

  it("are loaded through `lazyChunk` everywhere: React's own `lazy` keeps a failure for good", () => {
    expect(importing(/\blazy\b[^\n]*from "react"|lazyRouteComponent/)).toEqual(["live/chunks.ts"]);
  });

  it("hold the libraries that the first screen does not need", () => {
    expect(importing(/^import (?!type).*from "sonner"/m)).toEqual(["ui/Toaster.tsx"]);
    expect(importing(/^import (?!type).*from "radix-ui"/m).sort()).toEqual(["research/Report.tsx", "ui/overlays.tsx"]);
  });
});
