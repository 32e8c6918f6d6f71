import { expect, test } from "vitest";
import { isMuted, isQuiet, MUTED_FOREVER } from "@/lib/quiet";

const team = { muted_until: null, quiet_hours: "", quiet_zone: "UTC" };
const at = (time: string) => new Date(`2026-07-01T${time}Z`);

test("a muted team is quiet until its time, or for ever", () => {
  const muted = { ...team, muted_until: "2026-07-01T12:00:00Z" };
  expect([isQuiet(muted, at("11:59")), isQuiet(muted, at("12:00")), isQuiet(team, at("11:59"))]).toEqual([true, false, false]);
  expect(isMuted({ ...team, muted_until: MUTED_FOREVER }, at("12:00"))).toBe(true);
});

test("quiet hours are those of the team's time zone, also over midnight", () => {
  const night = { ...team, quiet_hours: "22:00-07:00", quiet_zone: "Europe/Berlin" };
  expect(["19:59", "20:00", "23:30", "04:59", "05:00"].map((time) => isQuiet(night, at(time)))).toEqual([false, true, true, true, false]);
  const noon = { ...team, quiet_hours: "12:00-13:30" };
  expect(["11:59", "12:00", "13:29", "13:30"].map((time) => isQuiet(noon, at(time)))).toEqual([false, true, true, false]);
  expect(isQuiet({ ...team, quiet_hours: "9:00 - 24:00", quiet_zone: "Mars/Base" }, at("00:00"))).toBe(isQuiet({ ...team, quiet_hours: "09:00-24:00", quiet_zone: Intl.DateTimeFormat().resolvedOptions().timeZone }, at("00:00")));
});
