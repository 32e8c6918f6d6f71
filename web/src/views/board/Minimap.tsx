/** Minimap: the whole board in a corner, with a frame around the visible part. It is shown while some of the board is out of sight. The canvas is painted when cards change; moving the view moves only the frame. */
import { useReactFlow, useStore } from "@xyflow/react";
import { type PointerEvent, useEffect, useRef } from "react";
import type { CardData } from "@/views/board/Card";
import type { TreeLayout } from "@/views/tree/layout";
import { countStatuses, drawTree } from "@/views/tree/picture";
import type { Stack } from "@/views/tree/stacks";

const SIZE = { width: 180, height: 110 };
const MIN_BOARD_WIDTH = 560;

interface Props {
  layout: TreeLayout;
  cards: Map<string, CardData>;
  stacks: Map<string, Stack>;
}

export function Minimap(props: Props) {
  const { width, height } = props.layout;
  // In a narrow picture, such as on a phone, it would cover cards.
  const isNarrow = useStore((state) => state.width < MIN_BOARD_WIDTH);
  const isAllVisible = useStore(({ transform: [x, y, zoom], width: seenWidth, height: seenHeight }) => x >= -1 && y >= -1 && x + width * zoom <= seenWidth + 1 && y + height * zoom <= seenHeight + 1);
  return isAllVisible || isNarrow ? null : <Overview {...props} />;
}

function Overview({ layout, cards, stacks }: Props) {
  const flow = useReactFlow();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scale = Math.min(SIZE.width / layout.width, SIZE.height / layout.height);

  useEffect(() => {
    const countsOf = (id: string) => countStatuses(stacks.get(id)?.nodeIds ?? [id], (one) => cards.get(one)?.displayStatus);
    if (canvas.current) drawTree(canvas.current, layout, { scale, ...SIZE, countsOf });
  }, [layout, cards, stacks, scale]);

  function centerAtPointer(event: PointerEvent) {
    if (event.buttons === 0) return;
    const box = event.currentTarget.getBoundingClientRect();
    void flow.setCenter((event.clientX - box.left) / scale, (event.clientY - box.top) / scale, { zoom: flow.getZoom() });
  }

  return (
    <div
      role="img"
      aria-label="Overview of the board"
      data-overview
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        centerAtPointer(event);
      }}
      onPointerMove={centerAtPointer}
      className="absolute right-3 bottom-7 touch-none overflow-hidden rounded-md border border-line bg-surface"
      style={SIZE}
    >
      <canvas ref={canvas} className="size-full" />
      <ViewportFrame scale={scale} />
    </div>
  );
}

function ViewportFrame({ scale }: { scale: number }) {
  const [x, y, zoom] = useStore((state) => state.transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const factor = scale / zoom;
  return (
    <div
      className="absolute top-0 left-0 rounded-[2px] border border-ink-2 bg-ink/10 will-change-transform"
      style={{ width: width * factor, height: height * factor, transform: `translate(${-x * factor}px, ${-y * factor}px)` }}
    />
  );
}
