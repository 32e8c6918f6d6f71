/** PageText: the text of a web page that an agent has read, as it was then. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronLeft, ExternalLink } from "lucide-react";
import { api, errorMessage, unwrap } from "@/api/client";
import { Markdown } from "@/reading/Markdown";
import { fullTime } from "@/lib/format";
import { ErrorPanel, Loading } from "@/ui";
import { screenHref } from "@/lib/screens";
import { Sources } from "@/parts/Sources";

export default function PageText({ team, url }: { team: string; url: string }) {
  const page = useQuery({ queryKey: ["page", team, url], queryFn: () => unwrap(api.GET("/api/teams/{team}/memory/page", { params: { path: { team }, query: { url } } })) });
  if (page.isPending) return <Loading label="Opening the page" />;
  if (!page.data) return <ErrorPanel title="The page could not be opened" detail={errorMessage(page.error)} onRetry={() => void page.refetch()} />;
  const { title, text, sources, read_at } = page.data;
  return (
    <div className="scroll min-h-0 flex-1" tabIndex={-1}>
      <article aria-label={title} className="mx-auto max-w-[820px] p-6 max-md:p-3">
        <Link to={screenHref(team, "memory") as "/"} className="inline-flex min-h-6 items-center gap-1 text-xs text-ink-2 hover:underline pointer-coarse:min-h-11">
          <ChevronLeft className="size-3.5" aria-hidden /> Memory
        </Link>
        <h2 dir="auto" className="mt-2 text-lg font-semibold break-words">{title}</h2>
        <p className="mt-1 text-sm text-ink-2">
          A web page, as the team read it on {fullTime(read_at)}.{" "}
          <a href={url} target="_blank" rel="noopener noreferrer" className="inline-flex max-w-full items-center gap-1 break-all underline underline-offset-2">
            {url} <ExternalLink className="size-3.5 shrink-0" aria-label="opens the site" />
          </a>
        </p>
        <Sources of={sources} />
        <div dir="auto" className="mt-4 border-t border-line pt-4">
          <Markdown text={text} />
        </div>
      </article>
    </div>
  );
}
