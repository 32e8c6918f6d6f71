/**
 * Direction: every place that shows or takes words of a person, an agent or a file has a direction.
 *
 * Words may be Arabic or Hebrew. `dir="auto"` takes the direction from the words; `dir="ltr"` is for words that must
 * stand exactly as they were written, such as a command to approve.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCES = fileURLToPath(new URL("..", import.meta.url));
/** Properties that hold words of people, agents or files. */
const WORDS = new Set(["name", "title", "goal", "task", "text", "path", "result", "words", "content", "detail", "reason", "summary", "node_title", "waiting_reason", "sender_name", "assignee", "creator", "checkpoint", "assessment", "progress"]);
/** Names of them, where the words are in a variable. */
const VARIABLES = new Set(["title", "goal", "task", "text", "summary", "subtitle", "description", "announcement"]);
const FIELDS = new Set(["input", "textarea", "Command.Input"]);
/** Fields without words. */
const WORDLESS = /^(checkbox|radio|file|number|range|datetime-local|date|time|hidden)$/;

/** Return what JSX expressions show: `node.title`, `title`, `x ? title : ""`, `capitalize(agent.name)`, `titleOf(item)`. */
function showsWords(node: ts.Expression): boolean {
  if (ts.isPropertyAccessExpression(node)) return WORDS.has(node.name.text);
  if (ts.isIdentifier(node)) return VARIABLES.has(node.text);
  if (ts.isParenthesizedExpression(node) || ts.isNonNullExpression(node)) return showsWords(node.expression);
  if (ts.isConditionalExpression(node)) return showsWords(node.whenTrue) || showsWords(node.whenFalse);
  if (ts.isBinaryExpression(node)) return node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken ? showsWords(node.right) : showsWords(node.left) || showsWords(node.right);
  if (ts.isTemplateExpression(node)) return node.templateSpans.some((span) => showsWords(span.expression));
  return ts.isCallExpression(node) && (/title/i.test(node.expression.getText()) || node.arguments.some((argument) => showsWords(argument)));
}

const attribute = (element: ts.JsxOpeningLikeElement, name: string) => element.attributes.properties.find((one): one is ts.JsxAttribute => ts.isJsxAttribute(one) && one.name.getText() === name);

/** Return the places of a file that show or take words without a direction, as "line: code". */
export function withoutDirection(name: string, source: string): string[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const report = (node: ts.Node) => found.push(`${name}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${node.getText().slice(0, 80)}`);
  const visit = (node: ts.Node, hasDirection: boolean): void => {
    let has = hasDirection;
    if (ts.isJsxElement(node)) has ||= attribute(node.openingElement, "dir") !== undefined;
    if (ts.isJsxOpeningElement(node) || ts.isJsxSelfClosingElement(node)) {
      const type = attribute(node, "type")?.initializer?.getText().replaceAll('"', "") ?? "text";
      if (FIELDS.has(node.tagName.getText()) && !WORDLESS.test(type) && !attribute(node, "dir")) report(node);
    }
    // A component of ours shows its children in an element of its own; `Link` is such an element.
    const shown = ts.isJsxExpression(node) && ts.isJsxElement(node.parent) && /^(?!option$)([a-z]|Link$)/.test(node.parent.openingElement.tagName.getText()) ? node.expression : undefined;
    if (shown && !has && showsWords(shown)) report(node);
    ts.forEachChild(node, (child) => visit(child, has));
  };
  visit(file, false);
  return found;
}

function sourcesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sourcesIn(path) : entry.name.endsWith(".tsx") && !entry.name.includes(".test.") ? [path] : [];
  });
}

describe("the direction of words", () => {
  it("is set wherever words are shown or taken", () => {
    expect(sourcesIn(SOURCES).flatMap((path) => withoutDirection(path.slice(SOURCES.length), readFileSync(path, "utf8")))).toEqual([]);
  }, 60_000);

  it("is missed where it is missing", () => {
    const wrong = withoutDirection("a.tsx", 'const a = <p>{node.title}</p>; const b = <input value="x" />; const c = <b>{ok && <i>{cut(goal)}</i>}</b>;');
    expect(wrong).toEqual(["a.tsx:1: {node.title}", 'a.tsx:1: <input value="x" />', "a.tsx:1: {cut(goal)}"]);
    expect(withoutDirection("b.tsx", 'const a = <p dir="auto">{node.title}</p>; const b = <input type="number" />; const c = <li dir="ltr"><b>{goal}</b></li>;')).toEqual([]);
  });
});
