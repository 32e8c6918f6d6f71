/** Results: what the team has delivered, newest first: reports, files and changes in its folders, with a preview beside the list. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Download, PackageCheck } from "lucide-react";
import { errorMessage } from "@/api/client";
import { cx } from "@/lib/cx";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { Button, EmptyState, ErrorPanel, Loading, Pills } from "@/ui";
import type { ScreenProps } from "@/lib/screens";
import { archiveHref } from "@/views/files/fileQuery";
import { FileCard, ResultCard } from "@/views/results/ResultCard";
import { ResultPreview } from "@/views/results/ResultPreview";
import { type Filter, type Result, resultsQuery } from "@/views/results/resultsQuery";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import { useSearchParams } from "@/parts/useSearchParams";

const FILTERS: readonly (readonly [Filter, string])[] = [["all", "All"], ["reports", "Reports"], ["files", "Files"], ["changes", "Changes"]];
const EMPTY: Record<Filter, [string, string]> = {
  all: ["No results yet", "Reports and files that the team submits, and changes that it makes in folders you gave it, appear here."],
  reports: ["No reports yet", "A report appears here when a piece of work ends with a result."],
  files: ["No files yet", "Files appear here when an agent publishes them with its result."],
  changes: ["No changes yet", "Changes appear here when an agent changes a file in a folder that you gave to the team."],
};

export default function Results({ team, rest }: ScreenProps) {
  const isNarrow = useNarrow(FOLD_PX);
  const [params, setParams] = useSearchParams();
  const filter = (FILTERS.find(([name]) => name === params.show)?.[0] ?? "all") as Filter;
  const hasParts = params.parts !== "no";
  const query = useInfiniteQuery(resultsQuery(team.id, filter, hasParts));
  const results = (query.data?.pages ?? []).flatMap((page) => page.results);
  const files = filter === "files" ? results.flatMap((result) => result.files.map((file) => ({ file, result }))) : [];
  const isEmpty = filter === "files" ? files.length === 0 : results.length === 0;
  const [title, hint] = EMPTY[filter];
  const search = new URLSearchParams(Object.entries({ show: params.show, parts: params.parts }).filter((entry): entry is [string, string] => entry[1] !== undefined)).toString();
  const suffix = search ? `?${search}` : "";
  return (
    <>
      <ScreenHeader team={team} title="Results">
        {results.some((result: Result) => result.file_count > 0) && (
          <a href={archiveHref(team.id, { results: true })} download className="inline-flex h-8 items-center gap-1.5 rounded-sm border border-line-2 bg-surface px-3 text-sm font-medium hover:bg-hover pointer-coarse:h-11">
            <Download className="size-4" aria-hidden /> Download all
          </a>
        )}
      </ScreenHeader>
      <div className="flex min-h-0 flex-1">
        {(!isNarrow || !rest) && (
          <section aria-label="Delivered" className={cx("flex min-w-0 flex-col", rest ? "w-[420px] shrink-0 border-r border-line" : "flex-1")}>
            <div className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-4 py-2">
              <Pills label="What to show" value={filter} onChange={(now) => setParams({ show: now === "all" ? undefined : now }, true)} options={FILTERS} />
              {filter !== "changes" && (
                <label className="ml-auto flex min-h-6 items-center gap-1.5 text-xs text-ink-2 max-md:ml-0 pointer-coarse:min-h-11">
                  <input type="checkbox" checked={hasParts} onChange={(event) => setParams({ parts: event.target.checked ? undefined : "no" }, true)} />
                  Parts of larger work
                </label>
              )}
            </div>
            <div className="scroll min-h-0 flex-1" tabIndex={-1}>
              {query.isPending ? (
                <Loading label="Loading the results" />
              ) : query.isError && results.length === 0 ? (
                <ErrorPanel title="The results could not be loaded" detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />
              ) : isEmpty && !query.hasNextPage ? (
                <EmptyState icon={<PackageCheck />} title={title}>
                  {hint}
                </EmptyState>
              ) : (
                <div className="mx-auto max-w-[860px] p-4 max-md:p-3">
                  <ul className={filter === "files" ? "divide-y divide-line" : "flex flex-col gap-3"}>
                    {filter === "files"
                      ? files.map(({ file, result }) => <FileCard key={file.path} team={team.id} file={file} result={result} openPath={rest} suffix={suffix} />)
                      : results.map((result) => <ResultCard key={`${result.kind}-${result.node_id}`} team={team.id} result={result} openPath={rest} suffix={suffix} />)}
                  </ul>
                  {query.hasNextPage && (
                    <Button className="mt-3" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                      {query.isFetchingNextPage ? "Loading…" : "Show earlier results"}
                    </Button>
                  )}
                </div>
              )}
            </div>
          </section>
        )}
        {rest && <ResultPreview team={team.id} rest={rest} results={results} suffix={suffix} />}
      </div>
    </>
  );
}
