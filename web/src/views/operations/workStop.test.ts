import { expect, it } from "vitest";
import { stoppedBy } from "@/views/operations/workStop";

it("who stopped the work is said without an id", () => {
  expect([stoppedBy({ by: "browser", by_kind: "session" }), stoppedBy({ by: "nightly", by_kind: "token" }), stoppedBy({ by: "admin", by_kind: "owner" })]).toEqual(["by you in the browser", "with the token “nightly”", "with the owner's token"]);
});
