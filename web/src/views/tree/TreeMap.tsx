/** TreeMap: all work of a team as a small picture of its tree, beside a conversation. A press on a task leads to the conversation with its agent. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type MouseEvent, useEffect, useMemo, useRef } from "react";
import type { WorkNode } from "@/api/client";
import { boardQuery, stagesQuery } from "@/api/queries";
import { capitalize, plural } from "@/lib/format";
import { screenHref } from "@/lib/screens";
import { useShell } from "@/parts/shellState";
import { displayStatusOf, STATUS_STYLES } from "@/parts/taskStatus";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import { useOpenItems } from "@/parts/unanswered";
import { progressOf, useFolds } from "@/views/tree/folds";
import { CARD, layoutTree } from "@/views/tree/layout";
import { countStatuses, drawTree } from "@/views/tree/picture";
import { stackAlike } from "@/views/tree/stacks";

const SIZE = { width: 276, height: 200 };
/** A small tree is not drawn larger than this: its cards would look as if they had something to read. */
const MAX_SCALE = 0.24;
/** A press beside a small card still means it. */
const REACH = 12;
const NONE: WorkNode[] = [];

interface Props {
  team: string;
  /** The agent whose tasks are marked. */
  agent: string;
}

export default function TreeMap(props: Props) {
  // A narrower window has no room for it beside the conversation.
  return useNarrow(FOLD_PX) ? null : <Picture {...props} />;
}

function Picture({ team, agent }: Props) {
  const board = useQuery(boardQuery(team));
  const stages = useQuery(stagesQuery(team));
  const open = useOpenItems(team);
  const theme = useShell((state) => state.theme);
  const navigate = useNavigate();
  const canvas = useRef<HTMLCanvasElement>(null);
  const nodes = board.data ?? NONE;
  const byId = useMemo(() => new Map(nodes.map((node) => [node.id, node])), [nodes]);
  const stacked = useMemo(() => stackAlike(nodes), [nodes]);
  const { tree } = useFolds(team, stacked.nodes, stacked.stacks, (id) => progressOf(byId.get(id)));
  const layout = useMemo(() => layoutTree(tree.nodes, stages.data ?? []), [tree, stages.data]);
  const statuses = useMemo(() => {
    const asking = new Set(open.map((item) => item.message.node_id));
    return new Map(nodes.map((node) => [node.id, displayStatusOf(node, asking.has(node.id))]));
  }, [nodes, open]);
  const scale = Math.min(SIZE.width / layout.width, SIZE.height / layout.height, MAX_SCALE);
  const size = { width: layout.width * scale + 2, height: layout.height * scale + 2 };

  const idsOf = (id: string): readonly string[] => {
    const below = tree.places.get(id)!;
    return below.isFolded ? [...(byId.has(id) ? [id] : []), ...below.below] : (stacked.stacks.get(id)?.nodeIds ?? [id]);
  };
  useEffect(() => {
    if (!canvas.current) return;
    const countsOf = (id: string) => countStatuses(idsOf(id), (one) => statuses.get(one));
    drawTree(canvas.current, layout, { scale, ...size, countsOf, isMarked: (id) => idsOf(id).some((one) => byId.get(one)?.assignee_id === agent) });
  }, [layout, statuses, agent, theme]); // eslint-disable-line

  if (nodes.length < 2) return null;
  const inWords = countStatuses([...byId.keys()], (id) => statuses.get(id)).map(([status, count]) => `${count} ${STATUS_STYLES[status].label.toLowerCase()}`).join(" · ");

  function taskAt(event: MouseEvent): WorkNode | undefined {
    const box = canvas.current!.getBoundingClientRect();
    const at = { x: (event.clientX - box.left) / scale, y: (event.clientY - box.top) / scale };
    const found = [...layout.positions].find(([, { x, y }]) => at.x > x - REACH && at.y > y - REACH && at.x < x + CARD.width + REACH && at.y < y + CARD.height + REACH);
    return found && byId.get(found[0]);
  }

  return (
    <section>
      <h2 className="mb-2 text-sm font-semibold">Map of the work</h2>
      <Link
        to={screenHref(team, "board") as "/"}
        aria-label={`Open the board: ${plural(nodes.length, "task")}, ${inWords.replaceAll(" · ", ", ")}`}
        className="flex rounded-sm"
        onMouseMove={(event) => {
          const task = taskAt(event);
          event.currentTarget.title = task ? [task.title, STATUS_STYLES[statuses.get(task.id)!].label, capitalize(task.assignee ?? "")].filter(Boolean).join(" · ") : "Open the board";
        }}
        onClick={(event) => {
          // The keyboard opens the board: it has no place in the picture.
          const task = event.detail > 0 ? taskAt(event) : undefined;
          if (!task || event.metaKey || event.ctrlKey) return;
          event.preventDefault();
          if (task.assignee_id) void navigate({ to: "/t/$team/a/$agent", params: { team, agent: task.assignee_id } });
          else void navigate({ to: screenHref(team, "board", "", `?node=${task.id}`) as "/" });
        }}
      >
        <canvas ref={canvas} style={size} />
      </Link>
      <p className="mt-2 text-xs text-ink-2">{inWords}</p>
    </section>
  );
}
