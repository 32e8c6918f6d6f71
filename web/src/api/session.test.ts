// @vitest-environment jsdom
import { afterEach, describe, expect, it, vi } from "vitest";
import { api } from "@/api/client";
import { fetchApi, onSignedInElsewhere, subprotocols, takeKeyFromAddress, withKey, withQuery } from "@/api/session";
import { archiveHref, fileQuery, rawHref } from "@/views/files/fileQuery";

const signIn = (key: string) => {
  history.replaceState(null, "", `/t/teams?goal=1#key=${key}`);
  takeKeyFromAddress();
};
const hear = (key: string, newValue: string | null) => dispatchEvent(new StorageEvent("storage", { key, newValue }));

describe("the key of the session", () => {
  afterEach(() => localStorage.clear());

  it("is taken out of the address and the history, and kept for this origin", () => {
    const entries = history.length;
    signIn("2nd-Half_9.x");
    expect(location.href).toBe(`${location.origin}/t/teams?goal=1`);
    expect([history.length, { ...localStorage }]).toEqual([entries, { "agiraph.key": "2nd-Half_9.x" }]);
  });

  it("stays what it was if the address has none", () => {
    signIn("first");
    for (const hash of ["", "#key=", "#other", "#key=a b", "#x&key=second"]) {
      history.replaceState(null, "", `/t/1${hash}`);
      takeKeyFromAddress();
      expect(localStorage.getItem("agiraph.key")).toBe("first");
    }
  });

  it("is sent with every request, and only in the header of those that can have one", async () => {
    const sent: [string, string | null][] = [];
    vi.stubGlobal("fetch", (input: Request | string, init?: RequestInit) => {
      const headers = input instanceof Request ? input.headers : new Headers(init?.headers);
      sent.push([input instanceof Request ? input.url : input, headers.get("x-agiraph-key")]);
      return Promise.resolve(new Response("{}", { headers: { "content-type": "application/json" } }));
    });
    signIn("one");
    await api.GET("/api/teams", { params: { query: { limit: 1 } } });
    await fetchApi("/api/teams?limit=1");
    signIn("two");
    await (fileQuery("t1", "a b.md").queryFn as unknown as () => Promise<unknown>)();
    expect(sent).toEqual([
      [`${location.origin}/api/teams?limit=1`, "one"],
      ["/api/teams?limit=1", "one"],
      ["/api/teams/t1/files/a%20b.md", "two"],
    ]);
  });

  it("is a subprotocol of the WebSocket, after one without a secret", () => {
    expect(subprotocols()).toEqual(["agiraph"]);
    signIn("half");
    expect(subprotocols()).toEqual(["agiraph", "agiraph.key.half"]);
  });

  it("is in the addresses that the browser loads by itself", () => {
    expect(rawHref("t1", "a?.png")).toBe("/api/teams/t1/files/a%3F.png");
    signIn("half");
    expect(rawHref("t1", "a?.png")).toBe("/api/teams/t1/files/a%3F.png?key=half");
    expect(withQuery(rawHref("t1", "a.svg"), { picture: "true" })).toBe("/api/teams/t1/files/a.svg?key=half&picture=true");
    expect(archiveHref("t1", { path: "a&b" })).toBe("/api/teams/t1/archive?path=a%26b&key=half");
    expect(withKey("/api/teams/t1/export")).toBe("/api/teams/t1/export?key=half");
  });

  it("is noticed when another tab has signed in", () => {
    let count = 0;
    onSignedInElsewhere(() => void count++);
    hear("agiraph.theme", "dark");
    hear("agiraph.key", null);
    expect(count).toBe(0);
    hear("agiraph.key", "half");
    expect(count).toBe(1);
  });
});
