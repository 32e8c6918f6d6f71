// @vitest-environment jsdom
import { render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { IntervalField } from "@/parts/teamFields";

it("offers a cycle every 30 seconds, and shows what was set elsewhere as it is", () => {
  render(
    <>
      <IntervalField value={30} onChange={vi.fn()} />
      <IntervalField value={45} onChange={vi.fn()} />
      <IntervalField value={120} onChange={vi.fn()} />
    </>,
  );
  const chosen = screen.getAllByRole("combobox").map((field) => (field as HTMLSelectElement).selectedOptions[0]?.textContent);
  expect(chosen).toEqual(["every 30 seconds", "every 45 seconds", "every 2 minutes"]);
});
