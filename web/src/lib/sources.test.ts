import { expect, test } from "vitest";
import { describeSources, sourceName, withoutFiles } from "@/lib/sources";

test("names each kind of source in words", () => {
  expect(sourceName("page:docs.python.org")).toBe("a page of docs.python.org");
  expect(sourceName("page")).toBe("a saved page");
  expect(sourceName("network:unknown")).toBe("the network");
  expect(sourceName("file:report: final.pdf")).toBe("the file report: final.pdf");
  expect(sourceName("mcp:tickets")).toBe("the MCP server tickets");
  expect(sourceName("later:kind")).toBe("later:kind");
});

test("joins several sources", () => {
  expect(describeSources([])).toBe("");
  expect(describeSources(["search"])).toBe("a web search");
  expect(describeSources(["hook", "page:a.example", "program:make"])).toBe("a webhook's caller, a page of a.example and the program make");
});

test("leaves files out by the name that the server has for them", () => {
  expect(withoutFiles(["file:a b.txt", "file:other.txt", "page:a.example"], [" a\n b.txt"])).toEqual(["file:other.txt", "page:a.example"]);
  expect(withoutFiles([`file:${"😀".repeat(60)}`], ["😀".repeat(80)])).toEqual([]);
});
