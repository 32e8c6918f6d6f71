/** One task from close by: what was asked, what it needs, what came of it, and what can be done about it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, ExternalLink, FileText, Link2, RotateCw, ScrollText, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { api, explain, type Schemas, type Team, unwrap } from "@/api/client";
import { inboxQuery, nodeQuery, queryClient } from "@/api/queries";
import { copyText } from "@/lib/clipboard";
import { capital, count, fullTime, money, plural, size } from "@/lib/format";
import { needsYou } from "@/shell/unanswered";
import { Markdown } from "@/conversation/Markdown";
import { Button, Chip, IconButton, Loading, Trouble } from "@/ui";
import { screenHref } from "@/views";
import type { Shown } from "@/views/board/Card";
import { useNow } from "@/views/shared/RelativeTime";
import { tell, tellTrouble } from "@/views/shared/toast";
import { elapsed, isOver, LOOKS, type Standing, StandingChip, stopWords } from "@/views/shared/taskStatus";

type NodeDetail = Schemas["NodeDetail"];
const UNMET: Record<NodeDetail["if_unmet"], string> = {
  fail: "If something it needs fails, it fails too.",
  skip: "If something it needs fails, it is left out.",
  go_on: "If something it needs fails, it goes on without.",
  ask: "If something it needs fails, its creator is asked.",
};
const SOURCES: Record<NodeDetail["source"], string> = { user: "you asked for it", delegation: "handed on by a teammate", trigger: "a trigger set it off", self: "its worker took it on", system: "agiraph itself" };

interface Props {
  id: string;
  team: Team;
  shown: Map<string, Shown>;
  stages: Schemas["StageView"][];
  onOpen: (id: string) => void;
  onClose: () => void;
}

export function Detail({ id, team, shown, stages, onOpen, onClose }: Props) {
  const query = useQuery(nodeQuery(id));
  const node = query.data;
  const top = useRef<HTMLHeadingElement>(null);
  useEffect(() => top.current?.focus({ preventScroll: true }), [id]);
  const title = node?.title ?? shown.get(id)?.node.title ?? "Task";
  return (
    <>
      <div className="flex shrink-0 items-start gap-2 border-b border-line py-3 pr-2 pl-5">
        <h2 ref={top} tabIndex={-1} className="min-w-0 flex-1 py-1 text-md leading-5 font-semibold outline-none">
          {title}
        </h2>
        <IconButton label="Copy a link to this" onClick={() => void copyText(location.href).then(() => tell("The link is copied."))}>
          <Link2 className="size-4" />
        </IconButton>
        <IconButton label="Close" keys="Esc" onClick={onClose}>
          <X className="size-4" />
        </IconButton>
      </div>
      <div className="scroll min-h-0 flex-1 px-5 pt-4 pb-8" tabIndex={0} role="region" aria-label="About this task">
        {query.isPending ? (
          <Loading what="Loading the task" className="p-0" />
        ) : !node ? (
          <Trouble title="This task could not be loaded" detail={explain(query.error)} onRetry={() => void query.refetch()} />
        ) : (
          <About node={node} team={team} shown={shown} stage={stages.find((stage) => stage.id === node.stage_id)} onOpen={onOpen} />
        )}
      </div>
    </>
  );
}

function About({ node, team, shown, stage, onOpen }: { node: NodeDetail; team: Team; shown: Map<string, Shown>; stage: Schemas["StageView"] | undefined; onOpen: (id: string) => void }) {
  const inbox = useQuery(inboxQuery);
  const question = needsYou(inbox.data?.items).find((item) => item.message.node_id === node.id);
  const standing: Standing = node.status === "waiting" && question ? "asks" : node.status;
  const now = useNow(1000, !isOver(node.status));
  const threadHref = node.thread_id ? screenHref(team.id, "threads", node.thread_id) : null;
  const costHref = screenHref(team.id, "cost");
  return (
    <div className="space-y-5 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <StandingChip standing={standing} />
        {stage && <Chip>{capital(stage.name)}</Chip>}
        {node.doubts && <Chip tone="wait">In doubt</Chip>}
        {node.stalled_at && !isOver(node.status) && <Chip tone="wait">No progress for a while</Chip>}
        <span className="flex-1" />
        <Acts node={node} />
      </div>

      {question && (
        <div className="rounded-md border border-wait-line bg-wait-bg p-3">
          <p className="font-semibold text-wait">{capital(question.message.sender_name)} needs an answer</p>
          <p className="mt-1">{question.message.text}</p>
          <Link to="/inbox/$item" params={{ item: question.message.id }} className="mt-2 inline-flex h-7 items-center rounded-sm bg-badge px-2.5 text-xs font-medium text-badge-ink pointer-coarse:h-10">
            Answer
          </Link>
        </div>
      )}
      {!question && node.waiting_reason && <Note title={node.status === "pending" ? "Why it is not assigned" : "Waits"}>{node.waiting_reason}</Note>}
      {node.status === "failed" && (
        <div role="note" className="rounded-md border border-fail/30 bg-fail-bg p-3">
          <p className="font-semibold text-fail">{stopWords(node.stop_reason) || "It failed"}</p>
          {node.result && <p className="mt-1 whitespace-pre-wrap text-ink-2">{node.result}</p>}
        </div>
      )}

      <dl className="grid grid-cols-[104px_1fr] gap-x-3 gap-y-1.5">
        <Fact name="Worker">
          {node.assignee_id ? (
            <Link to="/t/$team/a/$agent" params={{ team: team.id, agent: node.assignee_id }} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
              {capital(node.assignee ?? node.assignee_id)}
            </Link>
          ) : (
            isOver(node.status) ? "Nobody" : "Nobody yet"
          )}
        </Fact>
        <Fact name="Asked by">
          {capital(node.creator)} <span className="text-ink-3">· {SOURCES[node.source]}</span>
        </Fact>
        <Fact name="Time">
          {node.started_at ? elapsed(node, now) : "Not begun"}
          <span className="text-ink-3"> · made {fullTime(node.created_at)}</span>
        </Fact>
        {node.attempt > 0 && <Fact name="Attempts">{node.attempt === 1 ? "Once" : `${node.attempt} times`}</Fact>}
        <Fact name="Cost">
          {costHref ? (
            <Link to={`${costHref}?node=${node.id}` as "/"} className="tabular underline decoration-line-2 underline-offset-2 hover:decoration-ink">
              {money(node.cost.usd)}
            </Link>
          ) : (
            money(node.cost.usd)
          )}
          <span className="tabular text-ink-3">
            {" "}
            · {plural(node.cost.calls, "call")} · {count(node.cost.tokens)} tokens, with all below it
          </span>
        </Fact>
        <Fact name="Limits">{limits(node.budget)}</Fact>
        {threadHref && (
          <Fact name="Thread">
            <Link to={threadHref as "/"} className="inline-flex min-h-6 items-center gap-1 underline decoration-line-2 underline-offset-2 hover:decoration-ink">
              <ScrollText className="size-3.5" aria-hidden /> Every step of it
            </Link>
          </Fact>
        )}
      </dl>

      <Part title="What was asked">
        <Markdown text={node.task} />
      </Part>
      {node.acceptance.length > 0 && (
        <Part title="Done when">
          <ul className="list-disc space-y-1 pl-5 marker:text-ink-3">
            {node.acceptance.map((line, at) => (
              <li key={at}>{line}</li>
            ))}
          </ul>
        </Part>
      )}
      {node.result && node.status !== "failed" && (
        <Part title="Result">
          <Markdown text={node.result} />
          {node.stop_reason && stopWords(node.stop_reason) && <p className="mt-1 text-xs text-ink-3">{stopWords(node.stop_reason)}</p>}
        </Part>
      )}
      {node.doubts && (
        <Part title="Not confirmed">
          <p className="whitespace-pre-wrap">{node.doubts}</p>
        </Part>
      )}
      {node.checkpoint && !isOver(node.status) && (
        <Part title="Where it stands">
          <Markdown text={node.checkpoint} />
        </Part>
      )}
      {(node.depends_on.length > 0 || node.children.length > 0 || node.parent_id) && (
        <Part title="Around it">
          {node.parent_id && <Others title="Part of" ids={[node.parent_id]} shown={shown} onOpen={onOpen} />}
          {node.depends_on.length > 0 && (
            <>
              <Others title="Needs" ids={node.depends_on} shown={shown} onOpen={onOpen} />
              <p className="mt-0.5 text-xs text-ink-3">{UNMET[node.if_unmet]}</p>
            </>
          )}
          {node.children.length > 0 && <Others title="Led to" ids={node.children} shown={shown} onOpen={onOpen} />}
        </Part>
      )}
      {Object.keys(node.refs).length > 0 && (
        <Part title="Given to it">
          <ul className="space-y-1">
            {Object.entries(node.refs).map(([name, path]) => (
              <li key={name} className="flex items-baseline gap-2">
                <span className="shrink-0 font-medium">{name}</span>
                <FileLink team={team.id} path={path} />
              </li>
            ))}
          </ul>
        </Part>
      )}
      <Files node={node} team={team} />
    </div>
  );
}

function Acts({ node }: { node: NodeDetail }) {
  const [asks, setAsks] = useState(false);
  const after = () => {
    void queryClient.invalidateQueries({ queryKey: ["node", node.id] });
    void queryClient.invalidateQueries({ queryKey: ["whole-board", node.team_id] });
  };
  const cancel = useMutation({
    mutationFn: () => unwrap(api.POST("/api/nodes/{node}/cancel", { params: { path: { node: node.id } } })),
    onSuccess: () => {
      setAsks(false);
      after();
      tell(node.status === "running" ? "The task stops at its next step." : "The task is cancelled.");
    },
    onError: (error) => tellTrouble("The cancellation failed", error),
  });
  const retry = useMutation({
    mutationFn: () => unwrap(api.POST("/api/nodes/{node}/retry", { params: { path: { node: node.id } } })),
    onSuccess: () => {
      after();
      tell("The task is tried again, from where it stopped.");
    },
    onError: (error) => tellTrouble("The retry failed", error),
  });
  if (node.status === "failed") {
    return (
      <Button size="sm" disabled={retry.isPending} onClick={() => retry.mutate()}>
        <RotateCw className="size-3.5" /> Try again
      </Button>
    );
  }
  if (isOver(node.status)) return null;
  if (!asks) {
    return (
      <Button size="sm" onClick={() => setAsks(true)}>
        <Ban className="size-3.5" /> Cancel
      </Button>
    );
  }
  return (
    <span className="flex w-full flex-wrap items-center gap-2 rounded-md bg-sunken px-3 py-2">
      <span className="min-w-0 flex-1">End this{node.children.length > 0 ? " and everything below it" : ""}? It cannot be undone.</span>
      <Button size="sm" look="fail" autoFocus disabled={cancel.isPending} onClick={() => cancel.mutate()}>
        End it
      </Button>
      <Button size="sm" look="plain" onClick={() => setAsks(false)}>
        Keep it
      </Button>
    </span>
  );
}

function Others({ title, ids, shown, onOpen }: { title: string; ids: string[]; shown: Map<string, Shown>; onOpen: (id: string) => void }) {
  const [all, setAll] = useState(false);
  const some = all ? ids : ids.slice(0, 8);
  return (
    <div className="mt-1.5">
      <p className="text-xs text-ink-3">{title}</p>
      <ul>
        {some.map((id) => {
          const one = shown.get(id);
          const Icon = LOOKS[one?.standing ?? "pending"].icon;
          return (
            <li key={id}>
              <button type="button" onClick={() => onOpen(id)} className="-mx-1.5 flex min-h-7 w-[calc(100%+12px)] items-center gap-2 rounded-sm px-1.5 text-left hover:bg-hover pointer-coarse:min-h-10">
                <Icon className="size-3.5 shrink-0 text-ink-3" aria-hidden />
                <span className="min-w-0 flex-1 truncate">{one?.node.title ?? id}</span>
                {one && <span className="text-xs text-ink-3">{LOOKS[one.standing].words}</span>}
              </button>
            </li>
          );
        })}
      </ul>
      {ids.length > some.length && (
        <Button size="sm" look="plain" onClick={() => setAll(true)}>
          {ids.length - some.length} more
        </Button>
      )}
    </div>
  );
}

function Files({ node, team }: { node: NodeDetail; team: Team }) {
  const files = node.files.filter((file) => file.kind === "file");
  const home = `nodes/${node.id}/`;
  const groups = [
    ["Published", files.filter((file) => file.path.startsWith(`${home}published/`))],
    ["Scratch", files.filter((file) => !file.path.startsWith(`${home}published/`))],
  ] as const;
  if (files.length === 0) return null;
  return (
    <Part title="Files">
      {groups.map(([title, some]) =>
        some.length === 0 ? null : (
          <div key={title} className="mt-1.5">
            <p className="text-xs text-ink-3">{title}</p>
            <ul>
              {some.map((file) => (
                <li key={file.path} className="flex items-center gap-2">
                  <FileLink team={team.id} path={file.path} label={file.path.slice(home.length).replace(/^(published|scratch)\//, "")} />
                  <span className="tabular ml-auto text-xs text-ink-3">{size(file.size)}</span>
                </li>
              ))}
            </ul>
          </div>
        ),
      )}
    </Part>
  );
}

function FileLink({ team, path, label = path }: { team: string; path: string; label?: string }) {
  const href = screenHref(team, "files", path);
  const inner = (
    <>
      <FileText className="size-3.5 shrink-0 text-ink-3" aria-hidden />
      <span className="min-w-0 truncate">{label}</span>
    </>
  );
  if (!href || /^https?:/.test(path)) {
    return (
      <span className="flex min-h-7 min-w-0 items-center gap-1.5">
        {/^https?:/.test(path) ? <ExternalLink className="size-3.5 shrink-0 text-ink-3" aria-hidden /> : null}
        <span className="min-w-0 truncate">{label}</span>
      </span>
    );
  }
  return (
    <Link to={href as "/"} title={path} className="flex min-h-7 min-w-0 items-center gap-1.5 hover:underline pointer-coarse:min-h-10">
      {inner}
    </Link>
  );
}

function limits(budget: Schemas["Budget"]): string {
  const said = [
    budget.turns !== undefined && plural(budget.turns, "turn"),
    budget.usd != null && money(budget.usd),
    budget.tokens != null && `${count(budget.tokens)} tokens`,
    budget.model_calls != null && plural(budget.model_calls, "model call"),
    budget.seconds != null && `${Math.round(budget.seconds / 60)} min`,
  ].filter(Boolean);
  return said.join(" · ") || "The limits of its parent task";
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-3">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1 text-xs font-semibold text-ink-2">{title}</h3>
      {children}
    </section>
  );
}

function Note({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="rounded-md bg-sunken p-3">
      <p className="text-xs font-semibold text-ink-2">{title}</p>
      <p className="mt-0.5">{children}</p>
    </div>
  );
}
