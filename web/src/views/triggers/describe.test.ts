import { describe, expect, it } from "vitest";
import { describeAction, describeCron, describeTiming } from "@/views/triggers/describe";

describe("trigger descriptions", () => {
  it.each([
    ["0 9 * * MON", "Every Monday at 09:00"],
    ["30 8 * * 1-5", "On weekdays at 08:30"],
    ["0 9,17 * * *", "Every day at 09:00 and 17:00"],
    ["0 9 * * MON,THU", "Every Monday and Thursday at 09:00"],
    ["*/15 * * * *", "Every 15 minutes"],
    ["0 * * * *", "Every hour"],
    ["5 * * * *", "Every hour at 5 minutes past"],
    ["0 */6 * * *", "Every 6 hours"],
    ["0 7 1 * *", "On day 1 of every month at 07:00"],
    ["0 9 * 2 7#1", "0 9 * 2 7#1"],
    ["nonsense", "nonsense"],
  ])("reads %s", (line, words) => expect(describeCron(line)).toBe(words));

  it("describes the timing", () => {
    expect(describeTiming({ type: "scheduled", config: { cron: "0 9 * * *" }, zone: "Europe/Berlin" })).toBe("Every day at 09:00 (Europe/Berlin)");
    expect(describeTiming({ type: "heartbeat", config: { interval_seconds: 1800 } })).toBe("After 30 minutes without work, if there is news");
    expect(describeTiming({ type: "delayed", config: { delay_seconds: 5400 } })).toBe("Once, after 90 minutes");
    expect(describeTiming({ type: "on_event", config: { event_pattern: "delivery.*" } })).toBe("When delivery.* happens");
    expect(describeTiming({ type: "webhook", config: {} })).toBe("When another program calls its address");
  });
  it("describes the action", () => {
    expect(describeAction("wake_agent", { task: "Write the summary" }, "Ada")).toBe("Write the summary");
    expect(describeAction("wake_agent", {}, "Ada")).toBe("Wakes Ada");
  });
});
