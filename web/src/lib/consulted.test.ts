import { expect, test } from "vitest";
import { describeConsulted } from "@/lib/consulted";

const titles: Record<string, string> = { node_1: "Pumps" };
const describe = (call: string) => describeConsulted(call, (node) => titles[node]);

test("what a reply has read is named in words", () => {
  const calls = ["look_into(bob)", "look_into(node_1)", "read_report(node_2)", "search(pump prices)", "read_file(PLAN.md)", "list_files()", "check_board()", "dream(of (pumps))", "nonsense"];

  expect(calls.map((call) => describe(call).text)).toEqual(["the work of Bob", "the work “Pumps”", "the report node_2", "a search for “pump prices”", "PLAN.md", "the files in the team's folder", "the board", "dream(of (pumps))", "nonsense"]);
});

test("a task, a report and a file can be opened", () => {
  expect(describe("look_into(node_1)")).toMatchObject({ node: "node_1", item: null, file: null });
  expect(describe("read_report(msg_1)")).toMatchObject({ node: null, item: "msg_1", file: null });
  expect(describe("read_file(a)b.md)")).toMatchObject({ node: null, item: null, file: "a)b.md" });
});
