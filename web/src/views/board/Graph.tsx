/** Graph: the tasks of a team as a picture of the tree. Only the person moves the view. */
import "@xyflow/react/dist/base.css";
import "@/views/board/graph.css";
import { type CoordinateExtent, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import { ArrowRight, FoldVertical, Maximize, Minus, Plus, Spline, UnfoldVertical } from "lucide-react";
import { type FocusEvent, type KeyboardEvent, type PointerEvent, useCallback, useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button, IconButton } from "@/ui";
import { Backdrop, Dependencies, needsBetween } from "@/views/board/Backdrop";
import { Card, type CardNode, type Detail, DetailLevel, type CardData, type TreeItem } from "@/views/board/Card";
import type { FoldedTree } from "@/views/tree/folds";
import { CARD, shiftIntoView, type TreeLayout } from "@/views/tree/layout";
import { Minimap } from "@/views/board/Minimap";
import { hiddenInWords, StackCard, type StackNode } from "@/views/board/StackCard";
import { countStatuses } from "@/views/tree/picture";
import type { Stack } from "@/views/tree/stacks";

const NODE_TYPES = { card: Card, stack: StackCard };
/** With more cards than this, only the visible ones are rendered. */
const MANY_CARDS = 120;
/** Below the first zoom a card shows only its title, in large letters; below the second only its status. */
const TITLE_ZOOM = 0.55;
const STATUS_ZOOM = 0.26;
const MIN_ZOOM = 0.08;
/** A tree that would be opened without any words begins at its first task, at this zoom. */
const OPENING_ZOOM = 0.5;
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

interface Props {
  layout: TreeLayout;
  tree: FoldedTree;
  cards: Map<string, CardData>;
  stacks: Map<string, Stack>;
  selected: string | undefined;
  onOpen: (id: string) => void;
  onFold: (ids: readonly string[], isFolded: boolean) => void;
}

export default function Graph(props: Props) {
  return (
    <ReactFlowProvider>
      <GraphView {...props} />
    </ReactFlowProvider>
  );
}

function GraphView({ layout, tree, cards, stacks, selected, onOpen, onFold }: Props) {
  const flow = useReactFlow();
  // Rendering all cards in the other form may take longer than a frame. Deferred, it does not interrupt the zoom.
  const detail = useDeferredValue(useStore(detailAt));
  const frame = useRef<HTMLDivElement>(null);
  // A selected task that is folded away is shown by the card that hides it.
  const shown = selected === undefined ? undefined : tree.shownBy.get(selected);
  const [lastFocused, setLastFocused] = useState<string | undefined>();
  const tabStop = [lastFocused, shown].find((id) => id !== undefined && layout.positions.has(id)) ?? layout.positions.keys().next().value;

  const actions = useMemo(() => ({ onOpen, onFold }), [onOpen, onFold]);
  const previous = useRef(new Map<string, CardNode | StackNode>());
  const nodes = useMemo(() => {
    const next = new Map<string, CardNode | StackNode>();
    for (const [id, position] of layout.positions) {
      const { level, below, isFolded } = tree.places.get(id)!;
      const counts = isFolded || stacks.has(id) ? countStatuses(below, (one) => cards.get(one)?.displayStatus) : [];
      const item: TreeItem = {
        level,
        fold: below.length === 0 ? "none" : isFolded ? "folded" : "open",
        hidden: isFolded ? hiddenInWords(counts) : "",
        worst: counts[0]?.[0] ?? "completed",
        isTabStop: id === tabStop,
      };
      const stack = stacks.get(id);
      const card = cards.get(id);
      if (!stack && !card) continue;
      const usd = stack ? stack.nodeIds.reduce((sum, one) => sum + (cards.get(one)?.node.cost.usd ?? 0), 0) : 0;
      const old = previous.current.get(id);
      const data = stack ? { stack, counts, usd, item, actions } : { card, item, actions };
      const isSame = old && old.selected === (id === shown) && old.position.x === position.x && old.position.y === position.y && isAlike(old.data, data);
      // A card that did not change keeps its identity, so that React Flow does not render it again.
      next.set(
        id,
        isSame
          ? old
          : ({
              id,
              type: stack ? "stack" : "card",
              position,
              // React Flow positions nodes with `transform`, which makes each card a compositing layer and slows every frame. `left` and `top` do not.
              style: { transform: "none", zIndex: "auto", left: position.x, top: position.y },
              data,
              selected: id === shown,
              width: CARD.width,
              height: CARD.height,
              measured: CARD,
              focusable: false,
              ariaRole: "none",
              domAttributes: { "aria-roledescription": undefined },
            } as CardNode | StackNode),
      );
    }
    previous.current = next;
    return [...next.values()];
  }, [layout, tree, cards, stacks, shown, tabStop, actions]);

  const [pointedAt, onPointAt] = usePointedCard();
  const [areNeedsShown, setAreNeedsShown] = useState(false);
  const needs = useMemo(() => needsBetween(cards, tree.shownBy), [cards, tree]);
  const extent = useMemo((): CoordinateExtent => [[-MARGIN.x, -MARGIN.y], [layout.width + MARGIN.x, layout.height + MARGIN.y]], [layout]);

  // Screen readers read the cards as a tree.
  useLayoutEffect(() => {
    const list = frame.current?.querySelector(".react-flow__nodes");
    list?.setAttribute("role", "tree");
    list?.setAttribute("aria-label", "Tasks");
  }, []);

  // Work that grows may push the cards that a person looks at: the view goes with them.
  const drawn = useRef(layout);
  useEffect(() => {
    const before = drawn.current;
    drawn.current = layout;
    const box = frame.current?.getBoundingClientRect();
    if (before === layout || !box) return;
    const { x, y, zoom } = flow.getViewport();
    const focused = document.activeElement?.closest<HTMLElement>("[data-card]")?.dataset.card;
    const moved = movedBy(before, layout, [focused, shown], { left: -x / zoom, top: -y / zoom, width: box.width / zoom, height: box.height / zoom });
    if (moved.x !== 0 || moved.y !== 0) void flow.setViewport({ x: x - moved.x * zoom, y: y - moved.y * zoom, zoom });
  }, [layout]); // eslint-disable-line

  // New cards outside the visible part are announced by a button. The view does not move by itself.
  const seen = useRef<Set<string> | null>(null);
  const [outsideView, setOutsideView] = useState<string[]>([]);
  useEffect(() => {
    const ids = [...tree.shownBy.keys()];
    if (seen.current === null) {
      seen.current = new Set(ids);
      return;
    }
    const newIds = ids.filter((id) => !seen.current!.has(id));
    for (const id of newIds) seen.current.add(id);
    if (newIds.length > 0) setOutsideView((before) => [...before, ...newIds].filter((id) => !isInView(id)));
  }, [layout, tree]); // eslint-disable-line

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
    if (id) setLastFocused(id);
    if (id && event.target.matches(":focus-visible")) reveal(id);
  }

  /** With many cards only those in view exist, and Tab must reach one of them. */
  function keepTabStopInView() {
    const isInside = frame.current?.contains(document.activeElement) && document.activeElement?.closest("[data-card]");
    if (isInside || tabStop === undefined || isInView(tabStop)) return;
    const first = [...layout.positions.keys()].find(isInView);
    if (first !== undefined) setLastFocused(first);
  }

  /** Arrow keys go along the tree: down and up to the next card, right into what is below a task, left out of it. */
  function onKeyDown(event: KeyboardEvent) {
    const id = (event.target as HTMLElement).dataset.card;
    const place = tree.places.get(id ?? "");
    if (id === undefined || !place || event.metaKey || event.ctrlKey || event.altKey) return;
    const ids = [...layout.positions.keys()];
    const at = ids.indexOf(id);
    const hasBelow = place.below.length > 0;
    const keys: Record<string, () => string | undefined | void> = {
      ArrowDown: () => ids[at + 1],
      ArrowUp: () => ids[at - 1],
      Home: () => ids[0],
      End: () => ids.at(-1),
      ArrowRight: () => (place.isFolded ? onFold([id], false) : hasBelow ? ids[at + 1] : undefined),
      ArrowLeft: () => (hasBelow && !place.isFolded ? onFold([id], true) : (place.parent ?? undefined)),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    const next = keys[event.key]!();
    if (typeof next !== "string") return;
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

  const hasManyCards = nodes.length > MANY_CARDS;
  const folding = [...tree.places].filter(([, place]) => place.below.length > 0);
  const isAnyFolded = folding.some(([, place]) => place.isFolded);
  const foldable = folding.filter(([id, place]) => place.level > 1 || stacks.has(id)).map(([id]) => id);
  return (
    <div ref={frame} className={cx("relative size-full", hasManyCards && "many")} onKeyDown={onKeyDown} onPointerOver={onPointAt} onFocus={onFocus} onBlur={onPointAt}>
      <DetailLevel value={detail}>
        <ReactFlow
          nodes={nodes}
          nodeTypes={NODE_TYPES}
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
          onInit={() => {
            if (flow.getZoom() >= STATUS_ZOOM) return;
            void flow.setViewport({ x: PADDING.x, y: PADDING.top, zoom: OPENING_ZOOM });
            if (shown !== undefined) reveal(shown);
          }}
          onMoveEnd={() => {
            redrawSharp();
            isLeft.current = shown !== undefined && !isInView(shown);
            keepTabStopInView();
            setOutsideView((before) => (before.length > 0 ? before.filter((id) => !isInView(id)) : before));
          }}
          aria-label="Board"
        >
          <Backdrop layout={layout} cards={cards} stacks={stacks} />
          <Dependencies layout={layout} needs={needs} active={pointedAt ?? shown} areAllShown={areNeedsShown} />
        </ReactFlow>
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
          <Maximize aria-hidden className="size-3.5" /> <span className="max-sm:sr-only">Fit</span>
        </Button>
        {isAnyFolded ? (
          <Button size="sm" className="shadow-low" onClick={() => onFold(tree.parents, false)}>
            <UnfoldVertical aria-hidden className="size-3.5" /> <span className="max-sm:sr-only">Show every task</span>
          </Button>
        ) : (
          foldable.length > 0 && (
            <Button size="sm" className="shadow-low" onClick={() => onFold(foldable, true)}>
              <FoldVertical aria-hidden className="size-3.5" /> <span className="max-sm:sr-only">Fold all</span>
            </Button>
          )
        )}
        {needs.length > 0 && (
          <Button size="sm" aria-pressed={areNeedsShown} className={cx("shadow-low", areNeedsShown && "bg-press")} onClick={() => setAreNeedsShown(!areNeedsShown)}>
            <Spline aria-hidden className="size-3.5" /> <span className="max-sm:sr-only">Dependencies</span>
          </Button>
        )}
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

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Return how far what a person looks at has moved: one of the given cards that they see, else the middle one if no card in view has kept its place. */
function movedBy(before: TreeLayout, now: TreeLayout, looksAt: readonly (string | undefined)[], view: Box): { x: number; y: number } {
  const seen = [...before.positions].flatMap(([id, old]) => {
    const at = now.positions.get(id);
    const isSeen = old.x + CARD.width > view.left && old.y + CARD.height > view.top && old.x < view.left + view.width && old.y < view.top + view.height;
    if (!at || !isSeen) return [];
    const distance = Math.hypot(old.x + CARD.width / 2 - view.left - view.width / 2, old.y + CARD.height / 2 - view.top - view.height / 2);
    return [{ id, distance, x: at.x - old.x, y: at.y - old.y }];
  });
  const known = looksAt.flatMap((id) => seen.find((one) => one.id === id) ?? [])[0];
  const kept = seen.find((one) => one.x === 0 && one.y === 0);
  return known ?? kept ?? seen.sort((a, b) => a.distance - b.distance)[0] ?? { x: 0, y: 0 };
}

/** Whether two values are the same, or objects or lists of the same values. */
function isAlike(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => isAlike(a[key as never], b[key as never]));
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
