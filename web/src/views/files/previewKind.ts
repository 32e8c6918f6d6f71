/** previewKind: how a file is shown, by its name. */
import { baseName } from "@/views/files/tree";

/** The languages of highlight.js by extension. */
export const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", mjs: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript", sh: "bash", bash: "bash",
  json: "json", jsonl: "json", ndjson: "json", yaml: "yaml", yml: "yaml", toml: "yaml", html: "xml", htm: "xml", xml: "xml", svg: "xml", css: "css", sql: "sql", diff: "diff", patch: "diff",
};
export const extension = (path: string): string => (/\.(\w+)$/.exec(baseName(path))?.[1] ?? "").toLowerCase();

type PreviewKind = "markdown" | "csv" | "json" | "svg" | "code";
export function previewKind(path: string): PreviewKind {
  const ext = extension(path);
  if (["md", "markdown", "mdx"].includes(ext)) return "markdown";
  if (["csv", "tsv"].includes(ext)) return "csv";
  if (ext === "json" || ext === "svg") return ext;
  return "code";
}
