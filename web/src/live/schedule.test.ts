import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { atSecondFrame } from "@/live/store";

describe("a batch", () => {
  let frames: Map<number, () => void>;
  let count: number;
  const runFrame = () => {
    const due = [...frames.values()];
    frames.clear();
    due.forEach((run) => run());
  };
  beforeEach(() => {
    [frames, count] = [new Map(), 0];
    vi.useFakeTimers();
    vi.stubGlobal("requestAnimationFrame", (run: () => void) => (frames.set(++count, run), count));
    vi.stubGlobal("cancelAnimationFrame", (frame: number) => frames.delete(frame));
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("is shown at the second frame, once", () => {
    const flush = vi.fn();
    atSecondFrame(flush);
    runFrame();
    expect(flush).not.toHaveBeenCalled();
    runFrame();
    expect(flush).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(10_000);
    expect(flush).toHaveBeenCalledTimes(1);
  });

  it("is handled although the page is hidden before the frame comes", () => {
    const flush = vi.fn();
    atSecondFrame(flush);
    runFrame();
    vi.advanceTimersByTime(250);
    expect(flush).toHaveBeenCalledTimes(1);
    runFrame();
    expect(flush).toHaveBeenCalledTimes(1);
  });

  it.each([0, 1])("leaves no frame behind in a page that is hidden after %i frames", (before) => {
    atSecondFrame(vi.fn());
    for (let ran = 0; ran < before; ran++) runFrame();
    vi.advanceTimersByTime(250);
    expect(frames.size).toBe(0);
  });
});
