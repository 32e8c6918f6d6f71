/** AgentPage: one member of a team: what was said, what it does now, and a box to talk to it. */
import { useQuery } from "@tanstack/react-query";
import { Columns2, MoreVertical, Pause, Play, Search, Square, Wrench } from "lucide-react";
import { useEffect, useState } from "react";
import { toast } from "sonner";
import { type Agent, ApiError, api, explain, type Team, unwrap } from "@/api/client";
import { agentsQuery, queryClient, teamsQuery } from "@/api/queries";
import { useLive } from "@/live";
import { capital, money } from "@/lib/format";
import { Button, Chip, Dialog, Header, IconButton, Loading, Menu, MenuItem, MenuLine, Sheet, STATE_WORDS, type State, type Tone, Trouble } from "@/ui";
import { RailButton } from "@/shell/Home";
import { NotHere } from "@/shell/statusPages";
import { useShell } from "@/shell/state";
import { Composer } from "@/conversation/Composer";
import { Details } from "@/conversation/Details";
import { Finder } from "@/conversation/ConversationSearch";
import { Thread } from "@/conversation/ConversationView";
import { screenHref } from "@/views";
import { useNavigate } from "@tanstack/react-router";

const TONES: Record<State, Tone> = { idle: "done", queued: "work", working: "work", waiting: "plain", waiting_for_you: "wait", left: "plain", failed: "fail" };
const MARKS: Record<State, string> = { idle: "●", queued: "○", working: "●", waiting: "◌", waiting_for_you: "◆", left: "○", failed: "●" };

export function AgentPage({ teamId, agentId, at }: { teamId: string; agentId: string; at?: string }) {
  const teams = useQuery(teamsQuery);
  const agents = useQuery(agentsQuery(teamId));
  // While the server is away, what is known of them stays: only who was never seen is missed.
  if ((teams.isError && !teams.data) || (agents.isError && !agents.data)) {
    const error = teams.error ?? agents.error;
    if (error instanceof ApiError && error.status === 404) return <NotHere />;
    return <Trouble title="This member could not be loaded" detail={explain(error)} onRetry={() => void queryClient.invalidateQueries()} />;
  }
  if (!teams.data || !agents.data) return <Loading what="Loading the member" />;
  const team = teams.data.find((one) => one.id === teamId);
  const agent = agents.data.find((one) => one.id === agentId);
  if (!team || !agent) return <NotHere />;
  return <Conversation team={team} agent={agent} agents={agents.data} at={at} />;
}

function Conversation({ team, agent, agents, at }: { team: Team; agent: Agent; agents: Agent[]; at?: string }) {
  const { panel, panelSheet, open, set, toolDetail } = useShell();
  const [finding, setFinding] = useState(false);
  const [found, setFound] = useState<string | undefined>();
  const isCoordinator = agent.id === team.coordinator_id;
  const [showTools, setShowTools] = useState(true);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "f" && !event.shiftKey) {
        event.preventDefault();
        setFinding(true);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const status = agent.status as State;
  return (
    <div className="flex min-h-0 flex-1">
      <div className="flex min-w-0 flex-1 flex-col">
        <Header
          lead={<RailButton />}
          title={
            <span className="flex items-center gap-3">
              <span className="truncate">{capital(agent.name)}</span>
              <Chip tone={TONES[status]} className="shrink-0">
                <span aria-hidden>{MARKS[status]}</span>
                <span className="max-sm:hidden">{STATE_WORDS[status]}</span>
                <span className="sm:hidden">{status === "waiting_for_you" ? "Needs you" : STATE_WORDS[status]}</span>
              </Chip>
            </span>
          }
          subtitle={`${team.name} · ${isCoordinator ? "Runs the team" : agent.role}`}
        >
          <span className="mr-1 hidden items-center gap-3 text-sm text-ink-2 lg:flex">
            <span title="The model that answers">{agent.model}</span>
            {isCoordinator && team.usd > 0 && <span className="tabular" title="What the team has cost">{money(team.usd)}</span>}
          </span>
          <IconButton label="Search in this conversation" keys="/" onClick={() => setFinding(true)} id="find">
            <Search className="size-4" />
          </IconButton>
          <IconButton label={showTools ? "Hide tool calls" : "Show tool calls"} keys="v" aria-pressed={showTools} onClick={() => setShowTools(!showTools)} id="tools" className="max-sm:hidden">
            <Wrench className={showTools ? "size-4" : "size-4 opacity-50"} />
          </IconButton>
          <IconButton
            label="Details"
            keys="]"
            aria-pressed={panel}
            onClick={() => (matchMedia("(min-width: 1180px)").matches ? set({ panel: !panel }) : open("panelSheet", !panelSheet))}
          >
            <Columns2 className="size-4" />
          </IconButton>
          <TeamMenu team={team} />
        </Header>
        {finding && (
          <Finder
            agentId={agent.id}
            teamId={team.id}
            onFound={setFound}
            onClose={() => {
              setFinding(false);
              setFound(undefined);
            }}
          />
        )}
        <Thread team={team} agent={agent} agents={agents} at={found ?? at} showTools={showTools} openTools={toolDetail || !isCoordinator} isCoordinator={isCoordinator} />
        <Composer team={team} agent={agent} isCoordinator={isCoordinator} agents={agents} />
      </div>
      {panel && (
        <aside aria-label="Details" className="scroll hidden w-[308px] shrink-0 border-l border-line bg-canvas min-[1180px]:block">
          <Details team={team} agent={agent} agents={agents} isCoordinator={isCoordinator} />
        </aside>
      )}
      <Sheet open={panelSheet} onOpenChange={(now) => open("panelSheet", now)} side="right" title="Details" className="scroll bg-canvas">
        <Details team={team} agent={agent} agents={agents} isCoordinator={isCoordinator} />
      </Sheet>
    </div>
  );
}

type Verb = "pause" | "resume" | "stop";

export function useTeamVerb(team: Team): (verb: Verb) => void {
  return (verb) => {
    const done = { pause: "is paused: everyone stops at their next step", resume: "goes on", stop: "was stopped" }[verb];
    const asked =
      verb === "pause"
        ? unwrap(api.POST("/api/teams/{team}/pause", { params: { path: { team: team.id } } }))
        : verb === "resume"
          ? unwrap(api.POST("/api/teams/{team}/resume", { params: { path: { team: team.id } } }))
          : unwrap(api.POST("/api/teams/{team}/stop", { params: { path: { team: team.id } } }));
    asked.then(
      () => toast.custom(() => <Note words={`${team.name} ${done}.`} />),
      (error: unknown) => toast.custom(() => <Note words={explain(error)} isBad />),
    );
  };
}

export function Note({ words, isBad = false }: { words: string; isBad?: boolean }) {
  return <div className={`w-[340px] max-w-[90vw] rounded-md border bg-surface px-4 py-3 text-sm shadow-high ${isBad ? "border-fail/40 text-fail" : "border-line"}`}>{words}</div>;
}

function TeamMenu({ team }: { team: Team }) {
  const act = useTeamVerb(team);
  const navigate = useNavigate();
  const [asks, setAsks] = useState<"stop" | "archive" | null>(null);
  const isLive = useLive((state) => state.phase === "live");
  const archive = () =>
    unwrap(api.DELETE("/api/teams/{team}", { params: { path: { team: team.id } } })).then(
      () => void navigate({ to: "/" }),
      (error: unknown) => void toast.custom(() => <Note words={explain(error)} isBad />),
    );
  const cost = screenHref(team.id, "cost");
  return (
    <>
      <Menu
        trigger={
          <Button look="plain" size="icon" aria-label="Team actions">
            <MoreVertical className="size-4" />
          </Button>
        }
      >
        {team.status === "paused" ? (
          <MenuItem disabled={!isLive} onSelect={() => act("resume")}>
            <Play /> Go on
          </MenuItem>
        ) : (
          <MenuItem disabled={!isLive || team.status !== "active"} onSelect={() => act("pause")}>
            <Pause /> Pause the team
          </MenuItem>
        )}
        <MenuItem disabled={!isLive} onSelect={() => setAsks("stop")}>
          <Square /> Stop all its work
        </MenuItem>
        <MenuLine />
        {cost && <MenuItem onSelect={() => void navigate({ to: cost as "/" })}>What it costs</MenuItem>}
        <MenuItem disabled={!isLive} onSelect={() => setAsks("archive")}>
          Archive the team
        </MenuItem>
      </Menu>
      <Dialog
        open={asks !== null}
        onOpenChange={() => setAsks(null)}
        title={asks === "stop" ? `Stop ${team.name}?` : `Archive ${team.name}?`}
        description={asks === "stop" ? "Unfinished tasks are cancelled and their processes end. Finished work is kept." : "Its work is stopped and it leaves the list. Nothing is deleted."}
      >
        <div className="flex justify-end gap-2">
          <Button onClick={() => setAsks(null)}>Keep the team</Button>
          <Button
            look="fail"
            onClick={() => {
              if (asks === "stop") act("stop");
              else void archive();
              setAsks(null);
            }}
          >
            {asks === "stop" ? "Stop" : "Archive"}
          </Button>
        </div>
      </Dialog>
    </>
  );
}
