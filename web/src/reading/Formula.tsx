/**
 * Formula: TeX as MathML, which browsers draw and screen readers read.
 *
 * Temml returns MathML as text. It is parsed here into React elements and never set as innerHTML, which the
 * Content-Security-Policy (trusted types) refuses. Unknown elements, links and dangerous styles are left out.
 */
import { type CSSProperties, createElement, memo, type ReactNode, useMemo } from "react";
import temml from "temml";

const ELEMENTS = new Set(
  "math mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover mtable mtr mtd mstyle mpadded mphantom menclose mmultiscripts mprescripts merror semantics none".split(" "),
);
const ATTRIBUTES = new Set(
  "display mathvariant stretchy fence separator form lspace rspace minsize maxsize symmetric largeop movablelimits accent accentunder linethickness width height depth voffset columnalign rowspacing columnspacing columnlines rowlines displaystyle scriptlevel notation columnspan rowspan".split(" "),
);
const STYLES = /^(color|background-color|padding|margin|border|text-align|vertical-align|width|height|min-width|font|line-height|letter-spacing|transform|justify|display|math)/;
const TOKENS = /<(\/?)([a-z]+)((?:\s+[\w:-]+="[^"]*")*)\s*(\/?)>|([^<]+)/g;
const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };
const decode = (text: string): string => text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]!);

function styleOf(text: string): CSSProperties {
  const pairs = decode(text)
    .split(";")
    .map((rule) => rule.split(":").map((part) => part.trim()))
    .filter(([name, value]) => name && value && STYLES.test(name) && !/url|expression|[\\<>]/i.test(value));
  return Object.fromEntries(pairs.map(([name, value]) => [name!.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()), value])) as CSSProperties;
}

function propsOf(text: string): Record<string, unknown> {
  const props: Record<string, unknown> = {};
  for (const [, name, value] of text.matchAll(/([\w:-]+)="([^"]*)"/g)) {
    if (name === "class") props.className = value;
    else if (name === "style") props.style = styleOf(value!);
    else if (ATTRIBUTES.has(name!)) props[name!] = decode(value!);
  }
  return props;
}

/** Return MathML text as React elements. */
function toElements(mathml: string): ReactNode[] {
  const root: ReactNode[] = [];
  const open: { tag: string; props: Record<string, unknown>; children: ReactNode[] }[] = [{ tag: "", props: {}, children: root }];
  let key = 0;
  const close = (): void => {
    const { tag, props, children } = open.pop()!;
    const parent = open.at(-1)!.children;
    if (ELEMENTS.has(tag)) parent.push(createElement(tag, { ...props, key: key++ }, ...children));
    else parent.push(...children);
  };
  for (const [, slash, tag, attributes, isEmpty, text] of mathml.matchAll(TOKENS)) {
    if (text !== undefined) open.at(-1)!.children.push(decode(text));
    else if (slash) {
      if (open.length > 1) close();
    } else {
      open.push({ tag: tag!, props: propsOf(attributes ?? ""), children: [] });
      if (isEmpty) close();
    }
  }
  while (open.length > 1) close();
  return root;
}

const LONGEST_TEX = 4_000;

export default memo(function Formula({ tex, isOnItsOwn }: { tex: string; isOnItsOwn: boolean }) {
  const elements = useMemo(() => {
    if (tex.length > LONGEST_TEX) return null;
    try {
      return toElements(temml.renderToString(tex, { displayMode: isOnItsOwn, throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 20], wrap: isOnItsOwn ? "tex" : "none" }));
    } catch {
      return null;
    }
  }, [tex, isOnItsOwn]);
  if (!elements) return <code dir="ltr">{tex}</code>;
  // The TeX is the copy of it that a person can take along.
  return isOnItsOwn ? (
    <span dir="ltr" className="scroll block py-1 text-center" tabIndex={0} role="group" aria-label="Formula" title={tex}>
      {elements}
    </span>
  ) : (
    <span dir="ltr" title={tex}>
      {elements}
    </span>
  );
});
