/** Graph: the board as lanes of cards, with edges for dependencies. Only the person moves the view. */
import "@xyflow/react/dist/base.css";
import "@/views/board/graph.css";
import { type CoordinateExtent, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import { ArrowRight, Layers, Maximize, Minus, Plus } from "lucide-react";
import { type FocusEvent, type KeyboardEvent, type PointerEvent, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button, IconButton } from "@/ui";
import { Card, type CardNode, type Detail, DetailLevel, LaneBackground, type LaneNode, type CardData } from "@/views/board/Card";
import { EDGE_TYPES, MANY_EDGES, visibleEdges } from "@/views/board/edges";
import { CARD, type BoardLayout, shiftIntoView } from "@/views/board/layout";
import { Minimap } from "@/views/board/Minimap";
import { countStatuses, StackCard, type StackNode } from "@/views/board/StackCard";
import type { Stack } from "@/views/board/stacks";

const NODE_TYPES = { card: Card, lane: LaneBackground, stack: StackCard };
/** With more cards than this, only the visible ones are rendered. */
const MANY_CARDS = 120;
/** Below the first zoom a card shows only its title, in large letters; below the second only its status. */
const TITLE_ZOOM = 0.55;
const STATUS_ZOOM = 0.26;
const MIN_ZOOM = 0.08;
/** A card that is shown keeps this distance from the edges. The buttons stand below the board, not on it. */
const PADDING = { top: 28, bottom: 76, x: 28 };
const FIT = { padding: { top: `${PADDING.top}px`, bottom: `${PADDING.bottom}px`, x: `${PADDING.x}px` }, maxZoom: 1, minZoom: MIN_ZOOM } as const;
/** The least distance of a card that is shown from what covers the board. */
const GAP = 8;
/** So much empty space can be moved into view beside the board; a person cannot lose the board. */
const MARGIN = { x: 240, y: 180 };
/** The pointer must rest on a card for this time before its lines stand out: a moving board passes many cards. */
const HOVER_DELAY_MS = 90;
const detailAt = (state: { transform: [number, number, number] }): Detail => (state.transform[2] < STATUS_ZOOM ? "status" : state.transform[2] < TITLE_ZOOM ? "title" : "full");
const HANDLES = [
  { type: "target" as const, position: Position.Left, x: 0, y: CARD.height / 2, width: 1, height: 1 },
  { type: "source" as const, position: Position.Right, x: CARD.width, y: CARD.height / 2, width: 1, height: 1 },
];

interface Props {
  layout: BoardLayout;
  cards: Map<string, CardData>;
  stacks: Map<string, Stack>;
  stackOf: Map<string, string>;
  selected: string | undefined;
  onOpen: (id: string) => void;
  onToggleStack: (id: string) => void;
  /** Open or close all stacks; null if the board has none. */
  onToggleAll: ((open: boolean) => void) | null;
}

export default function Graph(props: Props) {
  return (
    <ReactFlowProvider>
      <GraphView {...props} />
    </ReactFlowProvider>
  );
}

function GraphView({ layout, cards, stacks, stackOf, selected, onOpen, onToggleStack, onToggleAll }: Props) {
  const flow = useReactFlow();
  // Rendering all cards in the other form may take longer than a frame. Deferred, it does not interrupt the zoom.
  const detail = useDeferredValue(useStore(detailAt));
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

  // A selected task that a closed stack hides is shown by its stack.
  const hidden = selected !== undefined && !layout.positions.has(selected) ? stackOf.get(selected) : undefined;
  const stackNodes = useMemo(
    () =>
      [...stacks.values()].flatMap((stack): StackNode[] => {
        const position = layout.positions.get(stack.id);
        if (!position) return [];
        return [
          {
            id: stack.id,
            type: "stack",
            position,
            style: { transform: "none", zIndex: "auto", left: position.x, top: position.y },
            data: { stack, counts: countStatuses(stack.nodeIds, cards), onToggle: onToggleStack },
            selected: stack.id === hidden,
            width: CARD.width,
            height: CARD.height,
            measured: CARD,
            handles: HANDLES,
            focusable: false,
          },
        ];
      }),
    [layout, cards, stacks, hidden, onToggleStack],
  );

  const lanes = useMemo(
    () =>
      layout.lanes.map((lane): LaneNode => {
        const tasks = lane.nodeIds.flatMap((id) => {
          const stack = stacks.get(id);
          return stack ? (stack.isOpen ? [] : stack.nodeIds) : [id];
        });
        return {
          id: `lane:${lane.id}`,
          type: "lane",
          position: { x: lane.x, y: 0 },
          // Lanes lie below the edges; otherwise a lane would cover the edges that cross it.
          style: { transform: "none", zIndex: -1, left: lane.x, top: 0 },
          data: { lane, total: tasks.length, done: tasks.filter((id) => cards.get(id)?.node.status === "completed").length },
          width: lane.width,
          height: lane.height,
          measured: { width: lane.width, height: lane.height },
          zIndex: -1,
          selectable: false,
          focusable: false,
        };
      }),
    [layout, cards, stacks],
  );

  const [pointedAt, onPointAt] = usePointedCard();
  const active = pointedAt ?? hidden ?? selected;
  const edges = useMemo(() => visibleEdges(layout, (id) => cards.get(id)?.node.status === "completed", active), [layout, cards, active]);
  const hasManyEdges = layout.edges.length > MANY_EDGES;
  const extent = useMemo((): CoordinateExtent => {
    const last = layout.lanes.at(-1);
    const height = Math.max(0, ...layout.lanes.map((lane) => lane.height));
    return [[-MARGIN.x, -MARGIN.y], [(last ? last.x + last.width : 0) + MARGIN.x, height + MARGIN.y]];
  }, [layout]);

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

  /** Move the view as little as needed to show the whole card. */
  function reveal(id: string, duration = 0) {
    const position = layout.positions.get(id);
    const { width, top, bottom } = frame.current!.getBoundingClientRect();
    if (!position || width === 0) return;
    const { x, y, zoom } = flow.getViewport();
    // The overview covers the corner while some of the board is out of sight.
    const lowest = frame.current!.querySelector("[data-overview]")?.getBoundingClientRect().top ?? bottom;
    const dx = shiftIntoView(position.x * zoom + x, CARD.width * zoom, PADDING.x, width - PADDING.x);
    const dy = shiftIntoView(position.y * zoom + y, CARD.height * zoom, PADDING.top, Math.min(bottom - PADDING.bottom, lowest - GAP) - top);
    if (dx !== 0 || dy !== 0) void flow.setViewport({ x: x + dx, y: y + dy, zoom }, { duration });
  }

  // The details of a card make the board narrower, and may come from a link: the card stays in view.
  const width = useStore((state) => state.width);
  const shown = hidden ?? selected;
  const isLeft = useRef(false);
  useEffect(() => void (isLeft.current = false), [shown]);
  useEffect(() => {
    // A person who has moved on to other cards stays there when the window changes.
    if (shown !== undefined && !isLeft.current) reveal(shown, 160);
  }, [shown, width]); // eslint-disable-line

  /** A card that gets the focus by a key is shown. The browser would scroll to it, which React Flow takes back. */
  function onFocus(event: FocusEvent) {
    onPointAt(event);
    const id = (event.target as HTMLElement).dataset.card;
    if (id && event.target.matches(":focus-visible")) reveal(id);
  }

  /** Arrow keys move the focus to the nearest card in their direction. */
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    const id = (event.target as HTMLElement).dataset.card;
    if (!step || !id) return;
    event.preventDefault();
    const next = nextCard(layout, id, step as [number, number]);
    if (!next) return;
    reveal(next);
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

  // In the order in which they are read, because Tab goes through them in this order.
  const nodes = useMemo(() => [...lanes, ...[...stackNodes, ...cardNodes].sort((a, b) => a.position.x - b.position.x || a.position.y - b.position.y)], [lanes, stackNodes, cardNodes]);
  const hasManyCards = cardNodes.length > MANY_CARDS;
  const isAnyClosed = [...stacks.values()].some((stack) => !stack.isOpen);
  return (
    <div ref={frame} className={cx("relative size-full", hasManyCards && "many")} onKeyDown={onKeyDown} onPointerOver={onPointAt} onFocus={onFocus} onBlur={onPointAt}>
      <DetailLevel value={detail}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          fitView
          fitViewOptions={FIT}
          minZoom={MIN_ZOOM}
          maxZoom={1.6}
          translateExtent={extent}
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
            isLeft.current = shown !== undefined && !isInView(shown);
            setOutsideView((before) => (before.length > 0 ? before.filter((id) => !isInView(id)) : before));
          }}
          aria-label="Board"
        />
      </DetailLevel>
      <Minimap layout={layout} cards={cards} stacks={stacks} />
      <div className="absolute bottom-3 left-3 flex items-end gap-2">
        <div className="flex flex-col rounded-sm border border-line bg-surface shadow-low">
          <IconButton label="Zoom in" onClick={() => void flow.zoomIn({ duration: 160 })}>
            <Plus className="size-4" />
          </IconButton>
          <IconButton label="Zoom out" onClick={() => void flow.zoomOut({ duration: 160 })}>
            <Minus className="size-4" />
          </IconButton>
        </div>
        <Button size="sm" aria-label="Fit: show everything" className="shadow-low" onClick={() => void flow.fitView({ ...FIT, duration: 160 })}>
          <Maximize aria-hidden className="size-3.5" /> Fit
        </Button>
        {onToggleAll && (
          <Button size="sm" className="shadow-low" onClick={() => onToggleAll(isAnyClosed)}>
            <Layers aria-hidden className="size-3.5" /> {isAnyClosed ? "Show every task" : "Fold alike tasks"}
          </Button>
        )}
        {hasManyEdges && active === undefined && <p className="pointer-events-none rounded-sm bg-canvas/90 px-2 py-1 text-xs text-ink-3 max-md:hidden">Point at a card to see its dependencies.</p>}
      </div>
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

/** Return the card that the pointer rests on or that has the focus, and the handler of the events that say so. */
function usePointedCard(): [string | undefined, (event: PointerEvent | FocusEvent) => void] {
  const [pointedAt, setPointedAt] = useState<string | undefined>();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const onPointAt = useCallback((event: PointerEvent | FocusEvent) => {
    const target = event.type === "blur" ? (event as FocusEvent).relatedTarget : event.target;
    const id = target instanceof Element ? target.closest<HTMLElement>("[data-card]")?.dataset.card : undefined;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setPointedAt(id), HOVER_DELAY_MS);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  return [pointedAt, onPointAt];
}
