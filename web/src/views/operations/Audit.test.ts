import { expect, it } from "vitest";
import { callerName } from "@/views/operations/Audit";

it("a request's sender is named without the id of its token", () => {
  expect(["admin", "browser (pass_1m7nykygpx8ptn4xse)", "nightly (report) (pass_1m7n)", "Ana's script (pass_1m7n)", "phone (pass_1m7n)", "Shared link (share_1m7n)"].map(callerName)).toEqual(["Owner's token", "Browser session", "nightly (report)", "Ana's script", "Phone session", "Shared link"]);
});
