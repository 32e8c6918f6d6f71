import { describe, expect, it } from "vitest";
import { type Attachment, attachedPath, fitting, MAX_CHARACTERS, pastedFiles, thumbnail, tooLong } from "@/views/composer/attachments";

const file = (name: string, size: number) => ({ name, size }) as File;
const attached = (bytes: number): Attachment => ({ name: "a", media_type: "text/plain", data: "", bytes });
const MIB = 2 ** 20;

describe("the files of a message", () => {
  it("are taken up to the limits, and each that is not is named with the reason", () => {
    const { files, problems } = fitting([attached(9 * MIB)], [file("big.zip", 11 * MIB), file("b.txt", MIB), file("c.txt", 2 * MIB), file("d.txt", MIB)]);
    expect(files.map((one) => one.name)).toEqual(["b.txt", "d.txt"]);
    expect(problems).toEqual([
      "“big.zip” was not attached: it has 11.0 MiB, and a file may have 10.0 MiB.",
      "“c.txt” was not attached: the files of a message may have 11.0 MiB together. Send it with the next one.",
    ]);
    expect(fitting(Array.from({ length: 10 }, () => attached(1)), [file("e.txt", 1)]).problems).toEqual(["“e.txt” was not attached: a message holds 10 files. Send it with the next one."]);
  });

  it("are drawn only if they are bitmaps", () => {
    expect(thumbnail({ media_type: "image/png", data: "AA" })).toBe("data:image/png;base64,AA");
    expect(thumbnail({ media_type: "image/svg+xml", data: "AA" })).toBeNull();
  });
});

it.each([["offer.md", "offer.md"], ["a/b\\c\u202e.md", "a_b_c_.md"], ["..", "file"]])("the file %s of a message is shown among the uploads", (name, shown) =>
  expect(attachedPath("msg_1", 2, name)).toBe(`user_uploads/attached/msg_1/2/${shown}`),
);

it("a message that is too long says by how much", () => {
  expect(tooLong("x".repeat(MAX_CHARACTERS))).toBeNull();
  expect(tooLong("x".repeat(MAX_CHARACTERS + 1234))).toBe("The message has 101,234 characters; 100,000 fit. Shorten it by 1,234, or send it as a file.");
});

it.each([
  ["a screenshot", {}, ["dot.png"]],
  ["a picture of a page, with its address as HTML", { "text/html": "<img src='https://a.example/dot.png'>" }, ["dot.png"]],
  ["a file in Finder", { "text/plain": "dot.png" }, ["dot.png"]],
  ["a file on Linux, by its path", { "text/plain": "/home/ada/dot.png\n" }, ["dot.png"]],
  ["a file by its address", { "text/plain": "file:///home/ada/dot.png" }, ["dot.png"]],
  ["cells of a spreadsheet", { "text/plain": "beans\t62", "text/html": "<table></table>" }, []],
  ["words of a text processor that are a file's name", { "text/plain": "dot.png", "text/html": "<p>dot.png</p>" }, []],
  ["words beside a picture", { "text/plain": "Look at this" }, []],
])("a paste of %s attaches %s", (_, texts: Record<string, string>, attached) => {
  const files = [new File(["x"], "dot.png", { type: "image/png" })] as unknown as FileList;
  const pasted = { files, types: ["Files", ...Object.keys(texts)], getData: (type: string) => texts[type] ?? "" };
  expect(pastedFiles(pasted).map(({ name }) => name)).toEqual(attached);
});
