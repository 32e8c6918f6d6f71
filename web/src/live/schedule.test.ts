import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { atSecondFrame } from "@/live/schedule";

describe("a batch", () => {
  let frames: (() => void)[];
  const runFrame = () => frames.splice(0).forEach((run) => run());
  beforeEach(() => {
    frames = [];
    vi.useFakeTimers();
    vi.stubGlobal("requestAnimationFrame", (run: () => void) => frames.push(run));
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
});
