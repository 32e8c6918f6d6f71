/** Minimap: the whole board in a corner, with a frame around the visible part. The canvas is painted when cards change; moving the view moves only the frame. */
import { useReactFlow, useStore } from "@xyflow/react";
import { type PointerEvent, useEffect, useRef } from "react";
import type { CardData } from "@/views/board/Card";
import { CARD, type BoardLayout } from "@/views/board/layout";

const SIZE = { width: 180, height: 110 };
const STATUS_COLOURS: Partial<Record<CardData["displayStatus"], string>> = { running: "--work-dot", completed: "--done-dot", doubts: "--done-dot", failed: "--fail-dot", asks: "--wait-dot" };

export function Minimap({ layout, cards }: { layout: BoardLayout; cards: Map<string, CardData> }) {
  const flow = useReactFlow();
  const canvas = useRef<HTMLCanvasElement>(null);
  const last = layout.lanes.at(-1);
  const width = last ? last.x + last.width : 1;
  const height = Math.max(1, ...layout.lanes.map((lane) => lane.height));
  const scale = Math.min(SIZE.width / width, SIZE.height / height);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const pixelRatio = devicePixelRatio;
    const styles = getComputedStyle(document.documentElement);
    context.canvas.width = SIZE.width * pixelRatio;
    context.canvas.height = SIZE.height * pixelRatio;
    context.scale(scale * pixelRatio, scale * pixelRatio);
    context.fillStyle = styles.getPropertyValue("--lane");
    for (const lane of layout.lanes) context.fillRect(lane.x, 0, lane.width, lane.height);
    for (const [id, position] of layout.positions) {
      context.fillStyle = styles.getPropertyValue(STATUS_COLOURS[cards.get(id)?.displayStatus ?? "pending"] ?? "--retired");
      context.fillRect(position.x, position.y, CARD.width, CARD.height);
    }
  }, [layout, cards, scale]);

  function centerAtPointer(event: PointerEvent) {
    if (event.buttons === 0) return;
    const box = event.currentTarget.getBoundingClientRect();
    void flow.setCenter((event.clientX - box.left) / scale, (event.clientY - box.top) / scale, { zoom: flow.getZoom() });
  }

  return (
    <div
      role="img"
      aria-label="Overview of the board"
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
