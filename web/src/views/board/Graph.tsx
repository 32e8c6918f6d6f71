/** The board as a picture: lanes of cards, and lines for what needs what. The view moves only when the person moves it. */
import "@xyflow/react/dist/base.css";
import "@/views/board/graph.css";
import { type Edge as FlowEdge, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import { ArrowRight, Maximize, Minus, Plus } from "lucide-react";
import { type KeyboardEvent, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button, IconButton } from "@/ui";
import { Card, type CardNode, Far, LaneBack, type LaneNode, type Shown } from "@/views/board/Card";
import { CARD, type Layout } from "@/views/board/layout";
import { Overview } from "@/views/board/Minimap";
import { isOver } from "@/views/shared/taskStatus";

const TYPES = { card: Card, lane: LaneBack };
/** From here on, only what is in view is drawn. */
const MANY = 120;
/** So many lines say nothing; beyond this, those of the card that is picked are drawn. */
const MANY_LINES = 200;
/** Smaller than this nothing can be read, so a board is not shown smaller at first. */
const LEAST_ZOOM = 0.3;
/** Below this, cards show a few words in large letters. */
const FAR_ZOOM = 0.45;
const isFar = (state: { transform: [number, number, number] }): boolean => state.transform[2] < FAR_ZOOM;
const HANDLES = [
  { type: "target" as const, position: Position.Left, x: 0, y: CARD.height / 2, width: 1, height: 1 },
  { type: "source" as const, position: Position.Right, x: CARD.width, y: CARD.height / 2, width: 1, height: 1 },
];

interface Props {
  plan: Layout;
  shown: Map<string, Shown>;
  selected: string | undefined;
  onOpen: (id: string) => void;
}

export default function Graph(props: Props) {
  return (
    <ReactFlowProvider>
      <Picture {...props} />
    </ReactFlowProvider>
  );
}

function Picture({ plan, shown, selected, onOpen }: Props) {
  const flow = useReactFlow();
  // Drawing all cards the other way may take longer than a picture; zooming goes on meanwhile.
  const far = useDeferredValue(useStore(isFar));
  const frame = useRef<HTMLDivElement>(null);
  const kept = useRef(new Map<string, CardNode>());

  const cards = useMemo(() => {
    const next = new Map<string, CardNode>();
    for (const [id, place] of plan.at) {
      const one = shown.get(id);
      if (!one) continue;
      const old = kept.current.get(id);
      const isSelected = id === selected;
      // What did not change keeps its identity, so that it is not drawn again.
      if (old && old.data.shown === one && old.selected === isSelected && old.position.x === place.x && old.position.y === place.y && old.data.onOpen === onOpen) next.set(id, old);
      else {
        next.set(id, {
          id,
          type: "card",
          position: place,
          // A transform for each card would make each a layer to be weighed against the others in every picture.
          style: { transform: "none", zIndex: "auto", left: place.x, top: place.y },
          data: { shown: one, onOpen },
          selected: isSelected,
          width: CARD.width,
          height: CARD.height,
          measured: CARD,
          handles: HANDLES,
          focusable: false,
        });
      }
    }
    kept.current = next;
    return [...next.values()];
  }, [plan, shown, selected, onOpen]);

  const lanes = useMemo(
    () =>
      plan.lanes.map(
        (lane): LaneNode => ({
          id: `lane:${lane.id}`,
          type: "lane",
          position: { x: lane.x, y: 0 },
          // Below the lines, which would end at its edge otherwise.
          style: { transform: "none", zIndex: -1, left: lane.x, top: 0 },
          data: { lane, done: lane.pieces.filter((id) => shown.get(id)?.standing === "completed").length },
          width: lane.width,
          height: lane.height,
          measured: { width: lane.width, height: lane.height },
          zIndex: -1,
          selectable: false,
          focusable: false,
        }),
      ),
    [plan, shown],
  );

  const hasManyLines = plan.edges.length > MANY_LINES;
  const edges = useMemo(
    () =>
      plan.edges.filter((edge) => !hasManyLines || selected === edge.source || selected === edge.target).map((edge): FlowEdge => {
        const isDone = shown.get(edge.source)?.standing === "completed";
        const isNear = selected === edge.source || selected === edge.target;
        return {
          id: edge.id,
          source: edge.source,
          target: edge.target,
          focusable: false,
          selectable: false,
          zIndex: isNear ? 1 : 0,
          style: {
            stroke: isNear ? "var(--ink-2)" : edge.kind === "needs" && isDone ? "var(--done-dot)" : "var(--edge)",
            strokeWidth: isNear ? 2 : 1.5,
            strokeDasharray: edge.kind === "spawned" ? "4 4" : undefined,
          },
        };
      }),
    [plan, shown, selected, hasManyLines],
  );

  // New work outside the view is said, not shown by moving the view.
  const seen = useRef<Set<string> | null>(null);
  const [beyond, setBeyond] = useState<string[]>([]);
  useEffect(() => {
    const ids = [...plan.at.keys()];
    if (seen.current === null) {
      seen.current = new Set(ids);
      return;
    }
    const fresh = ids.filter((id) => !seen.current!.has(id));
    for (const id of fresh) seen.current.add(id);
    if (fresh.length > 0) setBeyond((before) => [...before, ...fresh].filter((id) => !isInView(id)));
  }, [plan]); // eslint-disable-line

  function isInView(id: string): boolean {
    const place = plan.at.get(id);
    const box = frame.current?.getBoundingClientRect();
    if (!place || !box) return true;
    const { x, y, zoom } = flow.getViewport();
    const left = place.x * zoom + x;
    const top = place.y * zoom + y;
    return left > -CARD.width * zoom * 0.5 && top > -CARD.height * zoom * 0.5 && left < box.width - 20 && top < box.height - 20;
  }

  const show = useCallback(
    (id: string) => {
      const place = plan.at.get(id);
      if (place) void flow.setCenter(place.x + CARD.width / 2, place.y + CARD.height / 2, { zoom: Math.max(0.8, flow.getZoom()), duration: 160 });
    },
    [flow, plan],
  );

  /** A board too large to be seen whole is opened where the work is. */
  function begin() {
    const last = plan.lanes.at(-1);
    const width = frame.current?.clientWidth ?? 0;
    if (!last || (last.x + last.width) * LEAST_ZOOM < width) return;
    const lane = plan.lanes.find((one) => one.kind !== "goals" && one.pieces.some((id) => !isOver(shown.get(id)?.node.status ?? "completed"))) ?? plan.lanes[0]!;
    void flow.setViewport({ x: 24 - lane.x * LEAST_ZOOM, y: 32, zoom: LEAST_ZOOM });
  }

  /** Arrow keys go from card to card, by where they stand. */
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    const id = (event.target as HTMLElement).dataset.card;
    if (!step || !id) return;
    event.preventDefault();
    const next = neighbour(plan, id, step as [number, number]);
    if (!next) return;
    if (!isInView(next)) show(next);
    requestAnimationFrame(() => requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(next)}"]`)?.focus({ preventScroll: true })));
  }

  // The picture is one layer that is only moved. It keeps the sharpness it was drawn with, so it is drawn again after zooming.
  const drawnAt = useRef(1);
  function sharpen() {
    const { zoom } = flow.getViewport();
    const layer = frame.current?.querySelector<HTMLElement>(".react-flow__viewport");
    if (!layer || zoom === drawnAt.current) return;
    drawnAt.current = zoom;
    layer.style.willChange = "auto";
    requestAnimationFrame(() => requestAnimationFrame(() => (layer.style.willChange = "")));
  }

  const nodes = useMemo(() => [...lanes, ...cards], [lanes, cards]);
  const isMany = cards.length > MANY;
  return (
    <div ref={frame} className={cx("relative size-full", isMany && "many")} onKeyDown={onKeyDown}>
      <Far value={far}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={TYPES}
          fitView
          fitViewOptions={{ padding: 0.08, maxZoom: 1, minZoom: LEAST_ZOOM }}
          onInit={begin}
          minZoom={0.08}
          maxZoom={1.6}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          disableKeyboardA11y
          onlyRenderVisibleElements={isMany}
          panOnScroll
          zoomOnDoubleClick={false}
          onMoveEnd={() => {
            sharpen();
            setBeyond((before) => (before.length > 0 ? before.filter((id) => !isInView(id)) : before));
          }}
          aria-label="Board"
        />
      </Far>
      {isMany && <Overview plan={plan} shown={shown} />}
      <div className="absolute bottom-3 left-3 flex flex-col rounded-sm border border-line bg-surface shadow-low">
        <IconButton label="Zoom in" onClick={() => void flow.zoomIn({ duration: 160 })}>
          <Plus className="size-4" />
        </IconButton>
        <IconButton label="Zoom out" onClick={() => void flow.zoomOut({ duration: 160 })}>
          <Minus className="size-4" />
        </IconButton>
        <IconButton label="Show everything" onClick={() => void flow.fitView({ padding: 0.08, maxZoom: 1, duration: 160 })}>
          <Maximize className="size-4" />
        </IconButton>
      </div>
      {hasManyLines && !selected && (
        <p className="pointer-events-none absolute bottom-3 left-14 rounded-sm bg-canvas/90 px-2 py-1 text-xs text-ink-3">Pick a card to see what it needs and what needs it.</p>
      )}
      {beyond.length > 0 && (
        <Button
          look="ink"
          size="sm"
          className="absolute top-3 right-3 rounded-full shadow-high"
          onClick={() => {
            show(beyond[0]!);
            setBeyond([]);
          }}
        >
          {plural(beyond.length, "new piece", "new pieces")} of work <ArrowRight className="size-3.5" />
        </Button>
      )}
    </div>
  );
}

function neighbour(plan: Layout, id: string, [dx, dy]: [number, number]): string | null {
  const from = plan.at.get(id);
  if (!from) return null;
  let best: string | null = null;
  let least = Infinity;
  for (const [other, place] of plan.at) {
    const ahead = (place.x - from.x) * dx + (place.y - from.y) * dy;
    const aside = Math.abs((place.x - from.x) * dy) + Math.abs((place.y - from.y) * dx);
    if (other === id || ahead <= 0 || (dx === 0 && aside > 0)) continue;
    const far = ahead + 2 * aside;
    if (far < least) [best, least] = [other, far];
  }
  return best;
}
