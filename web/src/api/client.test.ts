import { describe, expect, it } from "vitest";
import { ApiError, toApiError, errorMessage, lostServer, nextKey, onSignedOut, unwrap } from "@/api/client";
import type { Message } from "@/api/client";
import { joinPages } from "@/api/queries";

describe("the client", () => {
  it("turns every error response into an ApiError with a text", () => {
    const error = toApiError(409, { title: "Conflict", detail: "It was answered before.", status: 409 });
    expect([error.status, error.title, errorMessage(error)]).toEqual([409, "Conflict", "It was answered before."]);
    expect(errorMessage(toApiError(502, "<html>bad gateway</html>"))).toBe("<html>bad gateway</html>");
    expect(errorMessage(toApiError(500, undefined))).toBe("The server answered 500");
    expect(errorMessage(new ApiError(0, "Away", "Is `agiraph up` still running?"))).toBe("Is “agiraph up” still running?");
  });

  it("promises to repeat only a request that reads", () => {
    expect(errorMessage(lostServer("GET"))).toContain("This page tries again by itself.");
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) expect(errorMessage(lostServer(method))).toBe("The server did not answer, so this may not be done. Try again when it is back.");
  });

  it("reports that the session has ended", async () => {
    let calls = 0;
    onSignedOut(() => void calls++);
    const refused = Promise.resolve({ error: { title: "Who are you?" }, response: new Response(null, { status: 401 }) });
    await expect(unwrap(refused)).rejects.toBeInstanceOf(ApiError);
    expect(calls).toBe(1);
  });

  it("keeps an idempotency key until the server has answered the request", () => {
    const lost = [new ApiError(0, "The server cannot be reached", ""), toApiError(502, ""), toApiError(503, ""), new TypeError("network error")];
    expect(lost.map((error) => nextKey("first", error))).toEqual(["first", "first", "first", "first"]);
    const answered = [null, toApiError(409, {}), toApiError(422, {})];
    expect(answered.map((error) => nextKey("first", error) === "first")).toEqual([false, false, false]);
  });

  it("returns the data of a successful response", async () => {
    expect(await unwrap(Promise.resolve({ data: 7, response: new Response("7") }))).toBe(7);
  });
});

describe("pages of a conversation", () => {
  const messages = (...ids: string[]) => ids.map((id) => ({ id }) as Message);
  it("join where they overlap", () => {
    const known = { messages: messages("1", "2", "3"), hasMore: false };
    expect(joinPages(known, { messages: messages("2", "3", "4"), hasMore: true })).toEqual({ messages: messages("1", "2", "3", "4"), hasMore: false });
  });
  it("keep only the newest page if they do not overlap", () => {
    const known = { messages: messages("1", "2"), hasMore: false };
    const newest = { messages: messages("8", "9"), hasMore: true };
    expect(joinPages(known, newest)).toEqual(newest);
  });
});
