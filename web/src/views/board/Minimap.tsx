/** Overview: the whole board in a corner, and what is in sight of it. Cards are painted when they change, not when the view moves. */
import { useReactFlow, useStore } from "@xyflow/react";
import { type PointerEvent, useEffect, useRef } from "react";
import type { Shown } from "@/views/board/Card";
import { CARD, type Layout } from "@/views/board/layout";

const SIZE = { width: 180, height: 110 };
const COLOURS: Partial<Record<Shown["standing"], string>> = { running: "--work-dot", completed: "--done-dot", failed: "--fail-dot", asks: "--wait-dot" };

export function Overview({ plan, shown }: { plan: Layout; shown: Map<string, Shown> }) {
  const flow = useReactFlow();
  const canvas = useRef<HTMLCanvasElement>(null);
  const last = plan.lanes.at(-1);
  const width = last ? last.x + last.width : 1;
  const height = Math.max(1, ...plan.lanes.map((lane) => lane.height));
  const scale = Math.min(SIZE.width / width, SIZE.height / height);

  useEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (!pen) return;
    const dense = devicePixelRatio;
    const looks = getComputedStyle(document.documentElement);
    pen.canvas.width = SIZE.width * dense;
    pen.canvas.height = SIZE.height * dense;
    pen.scale(scale * dense, scale * dense);
    pen.fillStyle = looks.getPropertyValue("--lane");
    for (const lane of plan.lanes) pen.fillRect(lane.x, 0, lane.width, lane.height);
    for (const [id, place] of plan.at) {
      pen.fillStyle = looks.getPropertyValue(COLOURS[shown.get(id)?.standing ?? "pending"] ?? "--retired");
      pen.fillRect(place.x, place.y, CARD.width, CARD.height);
    }
  }, [plan, shown, scale]);

  function go(event: PointerEvent) {
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
        go(event);
      }}
      onPointerMove={go}
      className="absolute right-3 bottom-7 touch-none overflow-hidden rounded-md border border-line bg-surface"
      style={SIZE}
    >
      <canvas ref={canvas} className="size-full" />
      <InSight scale={scale} />
    </div>
  );
}

function InSight({ scale }: { scale: number }) {
  const [x, y, zoom] = useStore((state) => state.transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const part = scale / zoom;
  return (
    <div
      className="absolute top-0 left-0 rounded-[2px] border border-ink-2 bg-ink/10 will-change-transform"
      style={{ width: width * part, height: height * part, transform: `translate(${-x * part}px, ${-y * part}px)` }}
    />
  );
}
