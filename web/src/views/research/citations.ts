/** Citations: which quotations each mark `[1]` in the text of a research report stands for. */
import type { Schemas } from "@/api/client";

export type Research = Schemas["ResearchView"];
export type Evidence = Schemas["EvidenceView"];
export type Source = Schemas["ResearchSourceView"];

export interface Citation {
  source: Source;
  evidence: Evidence[];
  /** Whether another source shows the claim before the mark, too. */
  isConfirmed: boolean;
}

const MARK = /\[(\d{1,3})\]/g;

/** A node of Markdown's syntax tree, as far as it is looked at here. */
interface MarkdownNode {
  type: string;
  value?: string;
  url?: string;
  children?: MarkdownNode[];
}

/** Where a mark leads to: the number of its source, and which mark of the report it is. */
export const citationUrl = (number: number, at: number): string => `#source-${number}-${at}`;

/** Return which mark of the report is the first one of a text that is a part of it; -1 if the report has no such marks in a row. */
export function firstMark(text: string, { sources, citations }: Pick<Research, "sources" | "citations">): number {
  const known = new Set(sources.map((one) => one.number));
  const marks = [...text.matchAll(MARK)].map((match) => Number(match[1])).filter((number) => known.has(number));
  return citations.findIndex((_, first) => marks.every((number, at) => citations[first + at]?.number === number));
}

/** Return a plugin that makes a link of each mark in the text, of which the first is this one of the report. Marks in code and in links stay as they are. */
export function markCitations(known: ReadonlySet<number>, first = 0) {
  return () => (tree: MarkdownNode) => {
    let at = first;
    const visit = (node: MarkdownNode): void => {
      if (!node.children || node.type === "link" || node.type === "linkReference") return;
      node.children = node.children.flatMap((child) => {
        if (child.type !== "text" || !child.value) {
          visit(child);
          return [child];
        }
        return split(child.value);
      });
    };
    const split = (text: string): MarkdownNode[] => {
      const parts: MarkdownNode[] = [];
      let end = 0;
      for (const match of text.matchAll(MARK)) {
        const number = Number(match[1]);
        if (!known.has(number)) continue;
        if (match.index > end) parts.push({ type: "text", value: text.slice(end, match.index) });
        parts.push({ type: "link", url: citationUrl(number, at++), children: [{ type: "text", value: String(number) }] });
        end = match.index + match[0].length;
      }
      if (end < text.length) parts.push({ type: "text", value: text.slice(end) });
      return parts;
    };
    visit(tree);
  };
}

/** Return what a mark stands for. The order of the marks tells which quotations are meant; if the text was cut or changed, all quotations of the source are. */
export function citationAt(url: string, research: Research): Citation | null {
  const [, number, at] = /^#source-(\d+)-(\d+)$/.exec(url) ?? [];
  const source = research.sources.find((one) => one.number === Number(number));
  if (!source) return null;
  const mark = research.citations[Number(at)];
  const isSame = mark?.number === source.number;
  const ids = isSame ? mark.evidence : source.evidence;
  return { source, evidence: research.evidence.filter((one) => ids.includes(one.id)), isConfirmed: (isSame ? mark.is_confirmed : null) ?? source.is_confirmed };
}

const CLASSES: Record<Source["source_class"], string> = { primary: "primary source", reference: "reference work", press: "press", vendor: "seller", forum: "forum", unknown: "unrated site" };
export const classLabel = (source: Source["source_class"]): string => CLASSES[source];
