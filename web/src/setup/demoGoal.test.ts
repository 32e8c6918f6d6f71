import { expect, test } from "vitest";
import { demoName } from "@/setup/demoGoal";

test("a second demo team has a name of its own", () => {
  expect([demoName([]), demoName(["Beans", "demo"]), demoName(["Demo", "Demo 2"]), demoName(["Demo 2"])]).toEqual(["Demo", "Demo 2", "Demo 3", "Demo"]);
});
