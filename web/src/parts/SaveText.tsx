/** SaveText: the actions of a report or message that save it as a Markdown file and print it by itself. */
import { FileDown, Printer } from "lucide-react";
import type { Schemas } from "@/api/client";
import { pointsText } from "@/lib/endings";
import { describeSources } from "@/lib/sources";
import { showError } from "@/parts/toast";
import { IconButton } from "@/ui";

/** What is saved. The title is also the name of the file. */
export interface Written {
  title: string;
  /** Who wrote it, for which team, and when. */
  byline: string;
  /** Said before the text, such as why the work ended early. */
  note?: string;
  text: string;
  doubts: readonly Schemas["Doubt"][];
  /** Where its words come from, as labels. A report lists its sources in its text, too. */
  sources: readonly string[];
}

/** Return a text as a Markdown file has it, with what the page says around it. */
export function asMarkdown({ title, byline, note, text, doubts, sources }: Written): string {
  const points = doubts.map((doubt) => `- ${[doubt.title, doubt.words].filter(Boolean).join(" ")}`);
  const parts = [`# ${title}`, `*${byline}*`, note && note.replace(/^/gm, "> "), text.trim(), points.length > 0 && `${pointsText(points.length)}:\n\n${points.join("\n")}`, sources.length > 0 && `Contains text from ${describeSources(sources)}.`];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

const MAX_NAME = 80;
/** Return a title as the name of a file: without the characters that a file system has for itself. */
export const fileNameOf = (title: string): string => `${[...title.replace(/[\p{C}\p{Z}\\/:*?"<>|]+/gu, " ").trim().replace(/^\.+/, "")].slice(0, MAX_NAME).join("").replace(/[. ]+$/, "") || "Message"}.md`;

function save(written: Written): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([asMarkdown(written)], { type: "text/markdown;charset=utf-8" }));
  link.download = fileNameOf(written.title);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Print this element by itself: the style sheet for paper hides all but what is marked. */
function print(element: HTMLElement): void {
  const isMarked = "print" in element.dataset;
  element.dataset.print = "";
  if (!isMarked) addEventListener("afterprint", () => delete element.dataset.print, { once: true });
  window.print();
}

/** `what` returns the text, which may have to be loaded, and `printed` the element that shows it. */
export function SaveText({ what, printed }: { what: () => Written | Promise<Written>; printed: () => HTMLElement | null }) {
  const act = (then: (written: Written) => void) => void Promise.resolve().then(what).then(then, (error: unknown) => showError("The text could not be loaded", error));
  return (
    <>
      <IconButton label="Save as Markdown" onClick={() => act(save)}>
        <FileDown className="size-4" />
      </IconButton>
      <IconButton
        label="Print"
        onClick={() =>
          act(() => {
            const element = printed();
            if (element) print(element);
          })
        }
      >
        <Printer className="size-4" />
      </IconButton>
    </>
  );
}
