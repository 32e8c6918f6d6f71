/** AgentPage: one agent: its conversation, the composer, the details panel and the team menu. */
import { useQuery } from "@tanstack/react-query";
import { Columns2, Copy, MoreVertical, Pause, Play, Search, Settings2, Square, Wrench } from "lucide-react";
import { type ReactNode, Suspense, useCallback, useEffect, useState } from "react";
import { create } from "zustand";
import { type Agent, ApiError, errorMessage, type Team } from "@/api/client";
import { agentsQuery, jobsQuery, queryClient, teamQuery } from "@/api/queries";
import { useLive } from "@/live";
import { capitalize, money, plural } from "@/lib/format";
import { readStored, writeStored } from "@/lib/storage";
import { Button, Chip, Dialog, Header, IconButton, Loading, Menu, MenuItem, MenuSeparator, Pills, Sheet, STATUS_LABELS, type AgentStatus, type Tone, ErrorPanel } from "@/ui";
import { SetUpLink } from "@/views/models/SetUpLink";
import { SidebarButton } from "@/parts/SidebarButton";
import { NotFound } from "@/parts/statusPages";
import { archiveTeam, restoreTeam } from "@/parts/archiving";
import { shownStatus, useIsStopped } from "@/parts/serverQueries";
import { useShell } from "@/parts/shellState";
import { ConfirmStop } from "@/parts/ConfirmStop";
import { canStartAgain, isAtWork, runTeamAction, teamLine } from "@/parts/teamState";
import { showNote } from "@/parts/toast";
import { Literal } from "@/reading/Literal";
import { Composer } from "@/views/composer/Composer";
import { StopWork } from "@/views/conversation/StopWork";
import type { ViewMode } from "@/views/conversation/folding";
import { screenHref } from "@/lib/screens";
import { Link, useNavigate } from "@tanstack/react-router";
import { useTeamQuestions } from "@/parts/unanswered";
import { lazyChunk } from "@/live/chunks";

const TeamBar = lazyChunk(() => import("@/parts/TeamBar"));
const WaitingBar = lazyChunk(() => import("@/parts/WaitingBar"));
const ConversationView = lazyChunk(() => import("@/views/conversation/ConversationView").then((loaded) => ({ default: loaded.ConversationView })));
const Details = lazyChunk(() => import("@/views/conversation/Details"));
const JobCards = lazyChunk(() => import("@/views/conversation/JobCards"));
const ConversationSearch = lazyChunk(() => import("@/views/conversation/ConversationSearch"));
/** Whether a member's page shows the conversation or every step of the work. This browser remembers it for all members. */
const useViewMode = create<{ view: ViewMode; show: (view: ViewMode) => void }>((set) => ({
  view: readStored("view") === "work" ? "work" : "conversation",
  show: (view) => {
    writeStored("view", view === "work" ? view : null);
    set({ view });
  },
}));
const NOTHING_FOUND = { words: [] };
const VIEWS = [["conversation", "Conversation"], ["work", "Work"]] as const;
const STATUS_TONES: Record<AgentStatus, Tone> = { idle: "done", queued: "work", working: "work", waiting: "plain", waiting_for_you: "wait", stopped: "wait", left: "plain", failed: "fail" };
const STATUS_MARKS: Record<AgentStatus, string> = { idle: "●", queued: "○", working: "●", waiting: "◌", waiting_for_you: "◆", stopped: "■", left: "○", failed: "●" };

export function AgentPage({ teamId, agentId, at }: { teamId: string; agentId: string; at?: string }) {
  const found = useQuery(teamQuery(teamId));
  const agents = useQuery(agentsQuery(teamId));
  // While the server cannot be reached, the cached team and agents stay on screen. Only data that was never loaded is an error.
  if ((found.isError && !found.data) || (agents.isError && !agents.data)) {
    const error = found.error ?? agents.error;
    if (error instanceof ApiError && error.status === 404) return <NotFound />;
    return <ErrorPanel title="This member could not be loaded" detail={errorMessage(error)} onRetry={() => void queryClient.invalidateQueries()} />;
  }
  if (!found.data || !agents.data) return <Loading label="Loading the member" />;
  const team = found.data;
  const agent = agents.data.find((one) => one.id === agentId);
  if (!agent) return <NotFound />;
  return <AgentView team={team} agent={agent} agents={agents.data} at={at} />;
}

function AgentView({ team, agent, agents, at }: { team: Team; agent: Agent; agents: Agent[]; at?: string }) {
  const { detailsPanel, detailsSheet, setOpen, update } = useShell();
  const [isSearching, setIsSearching] = useState(false);
  const [found, setFound] = useState<{ key?: string; words: string[] }>(NOTHING_FOUND);
  const onFound = useCallback((key: string | undefined, words: string[]) => setFound({ key, words }), []);
  const isCoordinator = agent.id === team.coordinator_id;
  const { view, show } = useViewMode();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // The browser's own search finds only the rendered rows of a virtualized list.
      if ((event.ctrlKey || event.metaKey) && event.key === "f" && !event.shiftKey) {
        event.preventDefault();
        setIsSearching(true);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const status = shownStatus(agent.status as AgentStatus, useIsStopped());
  return (
    <div className="flex min-h-0 flex-1">
      <div className="flex min-w-0 flex-1 flex-col">
        <Header
          lead={<SidebarButton />}
          title={
            // The name stays readable: the status is shortened first, down to its mark.
            <span className="flex items-center gap-3 max-sm:gap-1.5">
              <span dir="auto" className="truncate">{capitalize(agent.name)}</span>
              <StatusLink team={team.id} agent={agent.id} status={status}>
                <Chip tone={STATUS_TONES[status]} className="min-w-7 shrink-[999] overflow-hidden">
                  <span aria-hidden>{STATUS_MARKS[status]}</span>
                  <span className="truncate max-sm:sr-only">{STATUS_LABELS[status]}</span>
                </Chip>
              </StatusLink>
            </span>
          }
          subtitle={teamLine(team, isCoordinator ? "Runs the team" : agent.role)}
        >
          <span className="mr-1 hidden items-center gap-3 text-sm text-ink-2 lg:flex">
            <span title="The model that answers">{agent.model}</span>
            {isCoordinator && team.usd > 0 && <span className="tabular" title="What the team has cost">{money(team.usd)}</span>}
          </span>
          <IconButton label="Search in this conversation" keys="/" onClick={() => setIsSearching(true)} id="find">
            <Search className="size-4" />
          </IconButton>
          <span className="max-lg:hidden">
            <Pills label="What this page shows" value={view} onChange={show} options={VIEWS} />
          </span>
          <IconButton label="Show every step of the work" keys="v" aria-pressed={view === "work"} onClick={() => show(view === "work" ? "conversation" : "work")} id="tools" className="lg:hidden">
            <Wrench className={view === "work" ? "size-4" : "size-4 opacity-50"} />
          </IconButton>
          <IconButton
            label="Details"
            keys="]"
            aria-pressed={detailsPanel}
            onClick={() => (matchMedia("(min-width: 1180px)").matches ? update({ detailsPanel: !detailsPanel }) : setOpen("detailsSheet", !detailsSheet))}
            // On a phone, four icons leave no room for the name; the menu has this one.
            className="max-sm:hidden"
          >
            <Columns2 className="size-4" />
          </IconButton>
          <TeamMenu team={team} onDetails={() => setOpen("detailsSheet", true)} />
        </Header>
        <Suspense>
          <TeamBar team={team} />
          <WaitingBar team={team.id} />
        </Suspense>
        {team.status === "archived" && (
          <div role="status" className="flex min-h-10 flex-wrap items-center gap-3 border-b border-line bg-sunken px-4 py-1 text-sm">
            <span className="flex-1">This team is archived. It does no work and gets no messages.</span>
            <Button size="sm" onClick={() => void restoreTeam(team)}>
              Restore
            </Button>
          </div>
        )}
        {isSearching && (
          <Suspense>
            <ConversationSearch
              agentId={agent.id}
              teamId={team.id}
              onFound={onFound}
              onClose={() => {
                setIsSearching(false);
                setFound(NOTHING_FOUND);
              }}
            />
          </Suspense>
        )}
        <Suspense fallback={<Loading className="flex-1" label="Loading the conversation" />}>
          <ConversationView team={team} agent={agent} agents={agents} at={found.key ?? at} words={found.key === undefined ? undefined : found.words} view={view} expandTools={!isCoordinator} isCoordinator={isCoordinator} />
        </Suspense>
        <Suspense>
          <JobCards team={team} agent={agent} isCoordinator={isCoordinator} />
        </Suspense>
        {agent.model === "demo" && (
          <p className="flex flex-wrap items-center justify-center gap-x-2 px-4 text-xs text-ink-3">
            A scripted demo answers here, not an AI. <SetUpLink team={team.id} className="text-ink-2" />
          </p>
        )}
        <Composer team={team} agent={agent} isCoordinator={isCoordinator} agents={agents} stop={<StopWork team={team} agent={agent} isCoordinator={isCoordinator} />} />
      </div>
      {detailsPanel && (
        <aside aria-label="Details" className="scroll hidden w-[308px] shrink-0 border-l border-line bg-canvas min-[1180px]:block">
          <Suspense>
            <Details team={team} agent={agent} agents={agents} isCoordinator={isCoordinator} onClose={() => update({ detailsPanel: false })} />
          </Suspense>
        </aside>
      )}
      <Sheet open={detailsSheet} onOpenChange={(isOpen) => setOpen("detailsSheet", isOpen)} side="right" title="Details" className="scroll bg-canvas">
        <Suspense>
          <Details team={team} agent={agent} agents={agents} isCoordinator={isCoordinator} onClose={() => setOpen("detailsSheet", false)} />
        </Suspense>
      </Sheet>
    </div>
  );
}

/** The status of an agent; if it waits for the person, a link to its question, else to the team's first one. */
function StatusLink({ team, agent, status, children }: { team: string; agent: string; status: AgentStatus; children: ReactNode }) {
  const questions = useTeamQuestions(team);
  const question = questions.find((item) => item.message.sender === agent) ?? questions[0];
  if (status !== "waiting_for_you" || !question) return children;
  return (
    <Link to="/t/$team/a/$agent" params={{ team: question.message.team_id, agent: question.message.sender }} search={{ at: question.message.id }} title="Go to the question" className="flex min-h-6 min-w-7 shrink-[999] items-center rounded-full hover:underline pointer-coarse:-my-3 pointer-coarse:min-h-11">
      {children}
    </Link>
  );
}

function TeamMenu({ team, onDetails }: { team: Team; onDetails: () => void }) {
  const navigate = useNavigate();
  const [confirming, setConfirming] = useState<"stop" | "archive" | null>(null);
  const isLive = useLive((state) => state.connection === "live");
  const archive = () =>
    archiveTeam(team).then(
      () => navigate({ to: "/" }),
      (error: unknown) => showNote(errorMessage(error), true),
    );
  return (
    <>
      <Menu
        trigger={
          <Button variant="ghost" size="icon" aria-label="Team actions">
            <MoreVertical className="size-4" />
          </Button>
        }
      >
        {team.status === "paused" || canStartAgain(team) ? (
          <MenuItem disabled={!isLive} onSelect={() => void runTeamAction(team, "resume")}>
            <Play /> {team.status === "paused" ? "Resume the team" : "Start the team again"}
          </MenuItem>
        ) : (
          <MenuItem disabled={!isLive || !isAtWork(team.state)} onSelect={() => void runTeamAction(team, "pause")}>
            <Pause /> Pause the team
          </MenuItem>
        )}
        <MenuItem disabled={!isLive || !isAtWork(team.state)} onSelect={() => setConfirming("stop")}>
          <Square /> Stop the team
        </MenuItem>
        <MenuSeparator />
        <MenuItem className="sm:hidden" onSelect={onDetails}>
          <Columns2 /> Details
        </MenuItem>
        <MenuItem onSelect={() => void navigate({ to: screenHref(team.id, "settings") as "/" })}>
          <Settings2 /> Settings and new goal
        </MenuItem>
        <MenuItem onSelect={() => useShell.getState().update({ newTeam: true, copies: team.id })}>
          <Copy /> Duplicate the team
        </MenuItem>
        <MenuItem onSelect={() => void navigate({ to: screenHref(team.id, "cost") as "/" })}>Cost of the team</MenuItem>
        <MenuItem disabled={!isLive || team.status === "archived"} onSelect={() => setConfirming("archive")}>
          Archive the team
        </MenuItem>
      </Menu>
      {confirming === "stop" && (
        <ConfirmStop
          title={`Stop ${team.name}?`}
          onStop={() => {
            void runTeamAction(team, "stop");
            setConfirming(null);
          }}
          onClose={() => setConfirming(null)}
        >
          <TeamWork team={team.id} />
        </ConfirmStop>
      )}
      <Dialog open={confirming === "archive"} onOpenChange={() => setConfirming(null)} title={`Archive ${team.name}?`} description="Its work is stopped and it leaves the list. Nothing is deleted: you can restore it under “Archived teams”.">
        <div className="flex justify-end gap-2">
          <Button onClick={() => setConfirming(null)}>Keep the team</Button>
          <Button
            variant="danger"
            onClick={() => {
              void archive();
              setConfirming(null);
            }}
          >
            Archive
          </Button>
        </div>
      </Dialog>
    </>
  );
}

const MOST_NAMED = 5;

/** The open work of a team, as it is named before the team is stopped. */
function TeamWork({ team }: { team: string }) {
  const open = (useQuery(jobsQuery(team)).data ?? []).filter((job) => job.ended_at === null);
  if (open.length === 0) return <p>Nothing is open. What is scheduled ends.</p>;
  const more = open.length - MOST_NAMED;
  return (
    <>
      <p>{plural(open.length, "piece of work stops at its next step", "pieces of work stop at their next step")}:</p>
      <ul className="mt-1 list-disc pl-5">
        {open.slice(0, MOST_NAMED).map((job) => (
          <li key={job.node_id}>
            <Literal text={job.title || "its work"} keepEmoji />
          </li>
        ))}
        {more > 0 && <li>and {more} more</li>}
      </ul>
    </>
  );
}
