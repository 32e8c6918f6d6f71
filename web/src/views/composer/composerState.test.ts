import { expect, it } from "vitest";
import { takenBack } from "@/views/composer/attachments";
import { useComposer } from "@/views/composer/composerState";
import { quotation } from "@/views/composer/references";

const written = (agentId: string) => [useComposer.getState().texts[agentId], useComposer.getState().files[agentId] ?? []];

it("a quotation is put before the words that were typed after the button was drawn", () => {
  const { setText, putBefore } = useComposer.getState();
  setText("quoting", "Typed since.");
  putBefore("quoting", quotation("Yes.", "Bob", "/t/team_1"));
  expect(written("quoting")).toEqual(["> Yes.\n>\n> — [Bob](/t/team_1)\n\nTyped since.", []]);
});

it("a message that is edited again keeps the words and files of the draft, and brings its own files", () => {
  const { setText, setFiles, putBefore } = useComposer.getState();
  const note = { name: "note.txt", media_type: "text/plain", data: btoa("four"), bytes: 4 };
  const plan = { name: "plan.txt", media_type: "text/plain", data: btoa("a plan") };
  setText("editing", "My draft.");
  setFiles("editing", [note]);
  putBefore("editing", "Refused words.", [takenBack(plan)]);
  expect(written("editing")).toEqual(["Refused words.\n\nMy draft.", [{ ...plan, bytes: 6 }, note]]);
});

it("words that meet an empty composer stay as they are", () => {
  useComposer.getState().putBefore("empty", "About “Prices”: ");
  expect(written("empty")).toEqual(["About “Prices”: ", []]);
});
