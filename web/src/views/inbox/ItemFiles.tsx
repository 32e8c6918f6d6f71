/** ItemFiles: the files of the work that an inbox item reports on, as the Results screen lists them. */
import { useQuery } from "@tanstack/react-query";
import { nodeQuery } from "@/api/queries";
import { PublishedFiles } from "@/views/results/PublishedFiles";

const MAX_FILES = 20;

export default function ItemFiles({ team, node }: { team: string; node: string }) {
  const { data } = useQuery(nodeQuery(node));
  if (!data) return null;
  const names = Object.keys(data.manifest);
  const paths = new Set(names.map((name) => `nodes/${node}/published/${name}`));
  // Files at the top first: they are what the others belong to.
  const depth = (path: string): number => path.split("/").length;
  const files = data.files.filter((file) => paths.has(file.path)).sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
  if (files.length === 0) return null;
  return (
    <section aria-labelledby="item-files" className="mt-6">
      <h2 id="item-files" className="text-sm font-semibold">
        Files
      </h2>
      <PublishedFiles team={team} node={node} files={files.slice(0, MAX_FILES)} count={names.length} />
    </section>
  );
}
