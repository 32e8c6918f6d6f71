/** Layers: a file imports files of its own folder and of the folders before it, and no files import each other in a circle. */
import { readdirSync, readFileSync } from "node:fs";
import { posix, sep } from "node:path";
import { expect, test } from "vitest";

/** The folders and the files outside of them, from the ground up. Each screen is a layer, so that no two depend on each other. */
const LAYERS = [
  ...["styles.css", "lib", "api", "live", "ui", "reading", "parts"],
  ...["models", "research", "composer", "tree", "conversation", "files", "memory", "results", "board", "timeline", "threads"].map((view) => `views/${view}`),
  ...["settings", "cost", "triggers", "operations", "home", "inbox"].map((view) => `views/${view}`),
  ...["views", "shell", "router.tsx", "main.tsx"],
];
/** The types that the API's schema gives. They are no code, so every layer may name them. */
const GENERATED = "api/types.ts";

type Sources = Record<string, string>;

/** Return the files that each file imports: also for types, and those that are loaded later. */
function importsOf(sources: Sources): Map<string, string[]> {
  const fileOf = (path: string) => [path, `${path}.ts`, `${path}.tsx`, `${path}/index.ts`, `${path}/index.tsx`].find((name) => name in sources);
  const imports = (name: string) =>
    [...sources[name]!.matchAll(/^(?!\s*(?:\/\/|\*)).*?(?:\bfrom|\bimport\(?)\s*["'](@\/|\.)([^"']*)["']/gm)].map(([, start, rest]) => {
      const path = start === "@/" ? rest! : posix.join(posix.dirname(name), `.${rest}`);
      return fileOf(path) ?? path;
    });
  return new Map(Object.keys(sources).map((name) => [name, imports(name).filter((one) => one !== GENERATED)]));
}

/** Return the layer of a file: the most exact one that names it. */
function layerOf(name: string): number {
  const named = LAYERS.filter((layer) => name === layer || name.startsWith(`${layer}/`));
  return LAYERS.indexOf(named.sort((a, b) => b.length - a.length)[0] ?? "");
}

/** Return the imports of a file in a later layer; also of one that is missing, and of or by one that is in no layer. */
function upwards(sources: Sources): string[] {
  const isRight = (name: string, one: string) => one in sources && layerOf(one) >= 0 && layerOf(one) <= layerOf(name);
  return [...importsOf(sources)].flatMap(([name, imported]) => imported.filter((one) => !isRight(name, one)).map((one) => `${name} -> ${one}`));
}

/** Return the files that are left when those that import none of the others, and those that none of the others imports, are taken away again and again. */
function circles(sources: Sources): string[] {
  const left = importsOf(sources);
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const [name, imported] of left) {
      const isImported = [...left.values()].some((others) => others.includes(name));
      if (!isImported || !imported.some((one) => left.has(one))) left.delete(name);
    }
  }
  return [...left.keys()];
}

function written(): Sources {
  const root = `${import.meta.dirname}/`;
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).map((name) => name.split(sep).join("/"));
  return Object.fromEntries(names.filter((name) => /(?<!\.test)\.(tsx?|css)$/.test(name)).map((name) => [name, readFileSync(root + name, "utf8")]));
}

test("no file imports a file of a later layer", () => {
  expect(upwards(written())).toEqual([]);
});

test("no files import each other in a circle", () => {
  expect(circles(written())).toEqual([]);
});

test("an upward import, a missing file and a file without a layer are found", () => {
  const sources = {
    "lib/words.ts": 'import type { Card } from "@/views/board/Card";\nimport type { paths } from "@/api/types";',
    "views/board/Card.tsx": 'export { words } from "../../lib/words";\n// as import("@/shell/Shell") does',
    "views/index.ts": 'const load = () => import("./board/Card");',
    "shell/Shell.tsx": 'import "@/styles.css";\nimport {\n  one,\n} from "@/lib/gone";',
    "other/one.ts": 'import "@/lib/words";',
    "api/types.ts": "",
    "styles.css": "",
  };
  expect(upwards(sources)).toEqual(["lib/words.ts -> views/board/Card.tsx", "shell/Shell.tsx -> lib/gone", "other/one.ts -> lib/words.ts"]);
});

test("a circle is found, also of types and of what is loaded later", () => {
  const sources = { "ui/a.ts": 'import { b } from "./b";', "ui/b.ts": 'const load = () => import("@/ui/c");', "ui/c.tsx": 'import type { A } from "@/ui/a";', "ui/d.ts": 'import "./a";', "lib/e.ts": "" };
  expect(circles(sources)).toEqual(["ui/a.ts", "ui/b.ts", "ui/c.tsx"]);
});
