/** Graph: the board as lanes of cards, with edges for dependencies. Only the person moves the view. */
import "@xyflow/react/dist/base.css";
import "@/views/board/graph.css";
import { type Edge as FlowEdge, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import { ArrowRight, Maximize, Minus, Plus } from "lucide-react";
import { type KeyboardEvent, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button, IconButton } from "@/ui";
import { Card, type CardNode, ZoomedOut, LaneBackground, type LaneNode, type CardData } from "@/views/board/Card";
import { CARD, type BoardLayout } from "@/views/board/layout";
import { Minimap } from "@/views/board/Minimap";
import { isFinished } from "@/views/shared/taskStatus";

const NODE_TYPES = { card: Card, lane: LaneBackground };
/** With more cards than this, only the visible ones are rendered. */
const MANY_CARDS = 120;
/** With more edges than this, only the edges of the selected card are drawn. */
const MANY_EDGES = 200;
/** The smallest zoom at which a board opens: cards cannot be read below it. */
const MIN_INITIAL_ZOOM = 0.3;
/** Below this zoom, cards show only their title, in large letters. */
const DETAIL_ZOOM = 0.45;
const isBelowDetailZoom = (state: { transform: [number, number, number] }): boolean => state.transform[2] < DETAIL_ZOOM;
const HANDLES = [
  { type: "target" as const, position: Position.Left, x: 0, y: CARD.height / 2, width: 1, height: 1 },
  { type: "source" as const, position: Position.Right, x: CARD.width, y: CARD.height / 2, width: 1, height: 1 },
];

interface Props {
  layout: BoardLayout;
  cards: Map<string, CardData>;
  selected: string | undefined;
  onOpen: (id: string) => void;
}

export default function Graph(props: Props) {
  return (
    <ReactFlowProvider>
      <GraphView {...props} />
    </ReactFlowProvider>
  );
}

function GraphView({ layout, cards, selected, onOpen }: Props) {
  const flow = useReactFlow();
  // Rendering all cards in the other form may take longer than a frame. Deferred, it does not interrupt the zoom.
  const isZoomedOut = useDeferredValue(useStore(isBelowDetailZoom));
  const frame = useRef<HTMLDivElement>(null);
  const previousNodes = useRef(new Map<string, CardNode>());

  const cardNodes = useMemo(() => {
    const next = new Map<string, CardNode>();
    for (const [id, position] of layout.positions) {
      const card = cards.get(id);
      if (!card) continue;
      const old = previousNodes.current.get(id);
      const isSelected = id === selected;
      // A card that did not change keeps its identity, so that React Flow does not render it again.
      if (old && old.data.card === card && old.selected === isSelected && old.position.x === position.x && old.position.y === position.y && old.data.onOpen === onOpen) next.set(id, old);
      else {
        next.set(id, {
          id,
          type: "card",
          position,
          // React Flow positions nodes with `transform`, which makes each card a compositing layer and slows every frame. `left` and `top` do not.
          style: { transform: "none", zIndex: "auto", left: position.x, top: position.y },
          data: { card, onOpen },
          selected: isSelected,
          width: CARD.width,
          height: CARD.height,
          measured: CARD,
          handles: HANDLES,
          focusable: false,
        });
      }
    }
    previousNodes.current = next;
    return [...next.values()];
  }, [layout, cards, selected, onOpen]);

  const lanes = useMemo(
    () =>
      layout.lanes.map(
        (lane): LaneNode => ({
          id: `lane:${lane.id}`,
          type: "lane",
          position: { x: lane.x, y: 0 },
          // Lanes lie below the edges; otherwise a lane would cover the edges that cross it.
          style: { transform: "none", zIndex: -1, left: lane.x, top: 0 },
          data: { lane, done: lane.nodeIds.filter((id) => cards.get(id)?.node.status === "completed").length },
          width: lane.width,
          height: lane.height,
          measured: { width: lane.width, height: lane.height },
          zIndex: -1,
          selectable: false,
          focusable: false,
        }),
      ),
    [layout, cards],
  );

  const hasManyEdges = layout.edges.length > MANY_EDGES;
  const edges = useMemo(
    () =>
      layout.edges.filter((edge) => !hasManyEdges || selected === edge.source || selected === edge.target).map((edge): FlowEdge => {
        const isDone = cards.get(edge.source)?.node.status === "completed";
        const isSelectedEdge = selected === edge.source || selected === edge.target;
        return {
          id: edge.id,
          source: edge.source,
          target: edge.target,
          focusable: false,
          selectable: false,
          zIndex: isSelectedEdge ? 1 : 0,
          style: {
            stroke: isSelectedEdge ? "var(--ink-2)" : edge.kind === "needs" && isDone ? "var(--done-dot)" : "var(--edge)",
            strokeWidth: isSelectedEdge ? 2 : 1.5,
            strokeDasharray: edge.kind === "spawned" ? "4 4" : undefined,
          },
        };
      }),
    [layout, cards, selected, hasManyEdges],
  );

  // New cards outside the visible part are announced by a button. The view does not move by itself.
  const seen = useRef<Set<string> | null>(null);
  const [outsideView, setOutsideView] = useState<string[]>([]);
  useEffect(() => {
    const ids = [...layout.positions.keys()];
    if (seen.current === null) {
      seen.current = new Set(ids);
      return;
    }
    const newIds = ids.filter((id) => !seen.current!.has(id));
    for (const id of newIds) seen.current.add(id);
    if (newIds.length > 0) setOutsideView((before) => [...before, ...newIds].filter((id) => !isInView(id)));
  }, [layout]); // eslint-disable-line

  function isInView(id: string): boolean {
    const position = layout.positions.get(id);
    const box = frame.current?.getBoundingClientRect();
    if (!position || !box) return true;
    const { x, y, zoom } = flow.getViewport();
    const left = position.x * zoom + x;
    const top = position.y * zoom + y;
    return left > -CARD.width * zoom * 0.5 && top > -CARD.height * zoom * 0.5 && left < box.width - 20 && top < box.height - 20;
  }

  const centerOn = useCallback(
    (id: string) => {
      const position = layout.positions.get(id);
      if (position) void flow.setCenter(position.x + CARD.width / 2, position.y + CARD.height / 2, { zoom: Math.max(0.8, flow.getZoom()), duration: 160 });
    },
    [flow, layout],
  );

  /** Open a board that does not fit the window at the first lane with unfinished tasks. */
  function setInitialView() {
    const last = layout.lanes.at(-1);
    const width = frame.current?.clientWidth ?? 0;
    if (!last || (last.x + last.width) * MIN_INITIAL_ZOOM < width) return;
    const lane = layout.lanes.find((candidate) => candidate.kind !== "goals" && candidate.nodeIds.some((id) => !isFinished(cards.get(id)?.node.status ?? "completed"))) ?? layout.lanes[0]!;
    void flow.setViewport({ x: 24 - lane.x * MIN_INITIAL_ZOOM, y: 32, zoom: MIN_INITIAL_ZOOM });
  }

  /** Arrow keys move the focus to the nearest card in their direction. */
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    const id = (event.target as HTMLElement).dataset.card;
    if (!step || !id) return;
    event.preventDefault();
    const next = nextCard(layout, id, step as [number, number]);
    if (!next) return;
    if (!isInView(next)) centerOn(next);
    // One frame to move the view, one to render the card: with many cards, an invisible card has no element yet.
    requestAnimationFrame(() => requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(next)}"]`)?.focus({ preventScroll: true })));
  }

  // `will-change: transform` keeps the graph as one layer, rastered at the zoom at which it was painted. After a zoom it is
  // blurred, so the property is removed for two frames: the browser then paints the layer at the new zoom.
  const drawnZoom = useRef(1);
  function redrawSharp() {
    const { zoom } = flow.getViewport();
    const layer = frame.current?.querySelector<HTMLElement>(".react-flow__viewport");
    if (!layer || zoom === drawnZoom.current) return;
    drawnZoom.current = zoom;
    layer.style.willChange = "auto";
    requestAnimationFrame(() => requestAnimationFrame(() => (layer.style.willChange = "")));
  }

  const nodes = useMemo(() => [...lanes, ...cardNodes], [lanes, cardNodes]);
  const hasManyCards = cardNodes.length > MANY_CARDS;
  return (
    <div ref={frame} className={cx("relative size-full", hasManyCards && "many")} onKeyDown={onKeyDown}>
      <ZoomedOut value={isZoomedOut}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          fitView
          fitViewOptions={{ padding: 0.08, maxZoom: 1, minZoom: MIN_INITIAL_ZOOM }}
          onInit={setInitialView}
          minZoom={0.08}
          maxZoom={1.6}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          disableKeyboardA11y
          onlyRenderVisibleElements={hasManyCards}
          panOnScroll
          zoomOnDoubleClick={false}
          onMoveEnd={() => {
            redrawSharp();
            setOutsideView((before) => (before.length > 0 ? before.filter((id) => !isInView(id)) : before));
          }}
          aria-label="Board"
        />
      </ZoomedOut>
      {hasManyCards && <Minimap layout={layout} cards={cards} />}
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
      {hasManyEdges && !selected && (
        <p className="pointer-events-none absolute bottom-3 left-14 rounded-sm bg-canvas/90 px-2 py-1 text-xs text-ink-3">Select a card to see its dependencies.</p>
      )}
      {outsideView.length > 0 && (
        <Button
          variant="primary"
          size="sm"
          className="absolute top-3 right-3 rounded-full shadow-high"
          onClick={() => {
            centerOn(outsideView[0]!);
            setOutsideView([]);
          }}
        >
          {plural(outsideView.length, "new task")} <ArrowRight className="size-3.5" />
        </Button>
      )}
    </div>
  );
}

/** Return the nearest card in a direction. A distance to the side counts twice. */
function nextCard(layout: BoardLayout, id: string, [dx, dy]: [number, number]): string | null {
  const from = layout.positions.get(id);
  if (!from) return null;
  let best: string | null = null;
  let bestDistance = Infinity;
  for (const [other, position] of layout.positions) {
    const ahead = (position.x - from.x) * dx + (position.y - from.y) * dy;
    const sideways = Math.abs((position.x - from.x) * dy) + Math.abs((position.y - from.y) * dx);
    if (other === id || ahead <= 0 || (dx === 0 && sideways > 0)) continue;
    const distance = ahead + 2 * sideways;
    if (distance < bestDistance) [best, bestDistance] = [other, distance];
  }
  return best;
}
