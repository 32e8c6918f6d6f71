/** ApprovalCall: the question of a request and the call that a person decides on, complete, in pieces of which `ReadGate` knows whether they were seen. */
import { Fragment, memo, useState } from "react";
import type { Schemas } from "@/api/client";
import { cx } from "@/lib/cx";
import { countLines, type LiteralProps, LONG_CHARACTERS, LONG_LINES, Parts, partsOf, sizeText } from "@/reading/Literal";
import { splitPieces } from "@/reading/pieces";
import { EndMark, MustRead } from "@/reading/ReadGate";
import { otherScripts } from "@/reading/visible";

/** As `Literal`, for a text that a decision depends on: `ReadGate` knows which of its pieces were on screen. */
const LiteralToRead = memo(function LiteralToRead(props: LiteralProps) {
  return (
    <MustRead of={props.text}>
      {splitPieces(partsOf(props)).map((parts, at) => (
        <Fragment key={at}>
          <Parts parts={parts} />
          <EndMark />
        </Fragment>
      ))}
    </MustRead>
  );
});

/** The text of a question. */
export const QuestionText = ({ text, className }: { text: string; className?: string }) => (
  // A fixed base direction: right-to-left words in the text cannot change the order of the words around them.
  <p dir="ltr" data-words className={cx("literal", className)}>
    <LiteralToRead text={text} keepEmoji />
  </p>
);

type PendingCall = NonNullable<Schemas["MessageView"]["call"]>;

/** A call that waits for approval: its tool and all arguments, complete. Long arguments scroll; `ReadGate` knows whether all of them was seen. */
export function ApprovalCall({ call, className }: { call: PendingCall; className?: string }) {
  const given = Object.entries(call.arguments).filter(([, value]) => value !== null);
  const empty = Object.keys(call.arguments).filter((name) => call.arguments[name] === null);
  return (
    <dl data-call={call.name} className={cx("mt-2 overflow-hidden rounded-md border border-line-2 bg-surface", className)}>
      <div className="flex items-baseline gap-2 border-b border-line px-3 py-1.5 text-sm last:border-b-0">
        <dt className="text-ink-2">Tool</dt>
        <dd data-tool dir="ltr" className="min-w-0 literal font-mono font-semibold">
          <LiteralToRead text={call.name} isCode />
        </dd>
      </div>
      {given.map(([name, value]) => (
        <Argument key={name} name={name} value={value} />
      ))}
      {empty.length > 0 && (
        <div data-empty className="flex gap-1 px-3 py-1.5 text-xs text-ink-2">
          <dt>Empty:</dt>
          <dd dir="ltr" className="min-w-0 literal">
            <LiteralToRead text={empty.join(", ")} isCode />
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Return the rows of a small table: the fields of an object, or the entries of a list. Null for what is no table. */
function tableRows(value: unknown): [string, unknown][] | null {
  if (typeof value !== "object" || value === null) return null;
  const rows = Array.isArray(value) ? value.map((entry, at): [string, unknown] => [String(at + 1), entry]) : Object.entries(value);
  return rows.length > 0 && rows.length <= MOST_ROWS ? rows : null;
}

/** Return an argument as text: words as they are, anything else as JSON, one value a line. */
const argumentText = (value: unknown): string => (typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value, null, 2) : String(value));

function Argument({ name, value }: { name: string; value: unknown }) {
  const [isWhole, setIsWhole] = useState(false);
  const text = argumentText(value);
  const lineCount = countLines(text);
  const rows = tableRows(value);
  const scripts = otherScripts(text);
  const isCommand = name === "command";
  const isLong = !rows && (lineCount > LONG_LINES || text.length > LONG_CHARACTERS);
  const canFold = isLong && !isCommand;
  return (
    <div className="border-b border-line px-3 py-1.5 last:border-b-0">
      <dt className="flex flex-wrap items-baseline justify-between gap-x-3 text-xs text-ink-2">
        <span dir="ltr" className="literal">
          <LiteralToRead text={name} isCode />
        </span>
        {isLong && isCommand && <span dir="auto" className="tabular text-2xs">{sizeText(text, lineCount)}</span>}
        {canFold && (
          <button dir="auto" type="button" aria-expanded={isWhole} onClick={() => setIsWhole(!isWhole)} className="tabular min-h-6 text-2xs underline pointer-coarse:min-h-11">
            {isWhole ? "Fold" : `Unfold ${sizeText(text, lineCount)}`}
          </button>
        )}
      </dt>
      <dd>
        {rows ? (
          <ArgumentTable name={name} rows={rows} />
        ) : (
          <pre
            dir="ltr"
            tabIndex={0}
            role="group"
            aria-label={name}
            data-argument={name}
            // bidi-override shows the characters in the order in which they are stored, also those of right-to-left scripts.
            // break-spaces gives every space its place: a run of them cannot hang out of the box.
            className={cx("scroll text-xs literal font-mono leading-5 [tab-size:4] [unicode-bidi:bidi-override] [white-space:break-spaces]", (isLong || isCommand) && "rounded-sm bg-sunken px-2 py-1", canFold && !isWhole ? "max-h-36" : isWhole ? "max-h-[60vh]" : "max-h-[40vh]")}
          >
            <LiteralToRead text={text} isCode />
          </pre>
        )}
        {scripts.length > 0 && <p className="text-2xs text-ink-2">Some letters are {scripts.join(" and ")}; they may look like Latin ones.</p>}
      </dd>
    </div>
  );
}

/** The fields of an argument that is no text, complete; what they hold in turn is JSON. */
function ArgumentTable({ name, rows }: { name: string; rows: readonly [string, unknown][] }) {
  return (
    <div dir="ltr" tabIndex={0} role="group" aria-label={name} data-argument={name} className="scroll max-h-[40vh]">
      <table className="w-full font-mono text-xs leading-5 [unicode-bidi:bidi-override]">
        <tbody>
          {rows.map(([field, entry]) => (
            <tr key={field} className="border-t border-line first:border-t-0">
              <th scope="row" className="w-px max-w-40 py-0.5 pr-3 text-left align-top font-normal text-ink-2 literal">
                <LiteralToRead text={field} isCode />
              </th>
              <td className="py-0.5 align-top literal [white-space:break-spaces]">
                <LiteralToRead text={argumentText(entry)} isCode />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A table with more rows is shown as JSON. */
const MOST_ROWS = 40;
