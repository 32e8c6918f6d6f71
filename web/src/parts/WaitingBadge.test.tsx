// @vitest-environment jsdom
import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { WaitingBadge } from "@/parts/WaitingBadge";

it("shows the questions before what is unread, and its name says which of them it counts", () => {
  render(
    <>
      <WaitingBadge questions={0} unread={0} />
      <WaitingBadge questions={0} unread={4} />
      <WaitingBadge questions={1} unread={4} />
      <WaitingBadge questions={2} unread={0} />
    </>,
  );
  const shown = screen.getAllByRole("img").map((badge) => [badge.textContent, badge.getAttribute("aria-label"), badge.title]);
  const named = (n: string, label: string) => [n, label, label];
  expect(shown).toEqual([named("4", "4 unread"), named("1", "1 open question; 4 unread in all"), named("2", "2 open questions")]);
});
