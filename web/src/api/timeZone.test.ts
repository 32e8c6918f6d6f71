import { afterEach, expect, test, vi } from "vitest";

/** Run `tellTimeZone` against a server whose person has this time zone; return the changes that it asked for. */
async function changesWith(zone: string): Promise<unknown[]> {
  const changes: unknown[] = [];
  const OwnRequest = Request;
  // A browser completes a path with the address of the page; the client keeps both functions when it is loaded.
  vi.stubGlobal(
    "Request",
    class extends OwnRequest {
      constructor(path: string, init: RequestInit) {
        super(new URL(path, "http://127.0.0.1"), init);
      }
    },
  );
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "PATCH") changes.push(await request.json());
    return Response.json({ id: "human", name: "human", away_until: null, zone, channels: [] });
  });
  vi.resetModules();
  const { tellTimeZone } = await import("@/api/queries");
  await tellTimeZone();
  return changes;
}

afterEach(() => vi.unstubAllGlobals());

test("the browser's time zone is sent if the server knows none", async () => {
  expect(await changesWith("")).toEqual([{ zone: Intl.DateTimeFormat().resolvedOptions().timeZone }]);
});

test("a time zone that the person has said is left alone", async () => {
  expect(await changesWith("Asia/Tokyo")).toEqual([]);
});
