/** Code: highlighted source with line numbers. */
import { memo, useMemo } from "react";
import { highlightCode } from "@/reading/highlight";

export default memo(function Code({ text, language }: { text: string; language: string }) {
  const numbers = useMemo(() => Array.from({ length: text.replace(/\n$/, "").split("\n").length }, (_, at) => at + 1).join("\n"), [text]);
  const body = useMemo(() => highlightCode(text, language), [text, language]);
  return (
    <div className="flex p-4 font-mono text-xs leading-[19px]">
      <pre aria-hidden className="tabular shrink-0 pr-4 text-right text-ink-3 select-none">
        {numbers}
      </pre>
      <pre className="scroll min-w-0 flex-1" tabIndex={0} role="region" aria-label="Source">
        <code>{body}</code>
      </pre>
    </div>
  );
});
