/** Highlight: source code as React elements. highlight.js returns HTML; it is parsed here and never set as innerHTML, which the Content-Security-Policy (trusted types) refuses. */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createElement, type ReactNode } from "react";

for (const [name, language] of Object.entries({ bash, css, diff, javascript, json, python, sql, typescript, xml, yaml })) hljs.registerLanguage(name, language);
hljs.registerAliases(["sh", "shell", "console"], { languageName: "bash" });

/** Longer code is shown without colours: highlighting would block the page. */
const MAX_CHARACTERS = 60_000;
const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };
const decode = (text: string): string => text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]!);

export function highlightCode(code: string, language: string): ReactNode {
  if (code.length > MAX_CHARACTERS || !hljs.getLanguage(language)) return code;
  const root: ReactNode[] = [];
  const openSpans: { className: string; children: ReactNode[] }[] = [{ className: "", children: root }];
  let key = 0;
  for (const part of hljs.highlight(code, { language, ignoreIllegals: true }).value.split(/(<span class="[^"]*">|<\/span>)/)) {
    const innermost = openSpans[openSpans.length - 1]!;
    if (part.startsWith("<span")) {
      openSpans.push({ className: part.slice(13, -2), children: [] });
    } else if (part === "</span>") {
      openSpans.pop();
      openSpans[openSpans.length - 1]!.children.push(createElement("span", { key: key++, className: innermost.className }, ...innermost.children));
    } else if (part) {
      innermost.children.push(decode(part));
    }
  }
  return root;
}
