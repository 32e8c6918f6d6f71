import { expect, it } from "vitest";
import { demoName, refuseUnfilled } from "@/views/home/goalText";

const TEMPLATES = ["Compare [A], [B] and [C] for [what you need them for].", "Watch [subject]."];

it("a text with blanks of a template is refused with a sentence that names them", () => {
  expect(refuseUnfilled("Compare pumps, [B] and [C] for my garden.", TEMPLATES)).toBe("Fill in [B] and [C], or take them out: the team would not know what is meant.");
  expect(refuseUnfilled("Write to {{customer}} about [subject], [subject].", TEMPLATES)).toBe("Fill in {{customer}} and [subject], or take them out: the team would not know what is meant.");
  expect(refuseUnfilled("Watch [subject].", TEMPLATES)).toBe("Fill in [subject], or take it out: the team would not know what is meant.");
});

it("brackets that the person wrote are theirs", () => {
  expect(refuseUnfilled("Explain the type list[int], a[0] and [my note].", TEMPLATES)).toBeNull();
});

it("a second demo team has a name of its own", () => {
  expect([demoName([]), demoName(["Beans", "demo"]), demoName(["Demo", "Demo 2"]), demoName(["Demo 2"])]).toEqual(["Demo", "Demo 2", "Demo 3", "Demo"]);
});
