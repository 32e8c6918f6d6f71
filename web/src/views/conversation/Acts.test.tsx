// @vitest-environment jsdom
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Schemas } from "@/api/client";
import { Acts } from "@/views/conversation/Acts";
import { currentText, useComposer } from "@/views/composer/composerState";

type Act = Schemas["ActView"];
const act = (kind: Act["kind"], more: Partial<Act> = {}): Act => ({ kind, about: `${kind}_1`, text: `${kind} **it**`, words: "Use euros", is_undone: false, ...more });
let requests: { path: string; body: string }[] = [];
let answers: Response[] = [];

beforeEach(() => {
  requests = [];
  answers = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    requests.push({ path: new URL(request.url).pathname, body: await request.text() });
    return answers.shift() ?? Response.json({});
  });
});
afterEach(() => {
  localStorage.clear();
  useComposer.setState({ texts: {} });
});

const show = (...acts: Act[]) => render(<Acts message="msg_1" acts={acts} agentId="agent_1" />);

it("shows the runtime's words as they are, and undone ones struck through", () => {
  show(act("told"), act("stopped", { is_undone: true }));
  const [told, stopped] = screen.getAllByRole("listitem");
  expect(told!.textContent).toBe("told **it**UndoChange");
  expect(stopped!.textContent).toBe("stopped **it**undone");
  expect(stopped!.querySelector(".line-through")!.textContent).toBe("stopped **it**");
});

it("says what it means that a reply has no line", () => {
  show(act("told"));
  expect(screen.getByRole("list", { name: "What this reply did" }).title).toBe("What a reply did stands under it. Without such a line it did nothing.");
});

it("says why something cannot be undone", async () => {
  answers = [Response.json({ title: "Conflict", detail: "That work is completed already; there is nothing to undo.", status: 409 }, { status: 409 })];
  show(act("started"));
  await userEvent.click(screen.getByRole("button", { name: "Undo" }));
  expect((await screen.findByRole("alert")).textContent).toBe("That work is completed already; there is nothing to undo.");
  expect(requests).toEqual([{ path: "/api/messages/msg_1/acts/0/undo", body: "" }]);
});

it("puts the words of what is changed into the composer, once it is undone", async () => {
  show(act("forgot"), act("told"));
  expect(screen.getAllByRole("button", { name: "Change" })).toHaveLength(1);
  await userEvent.click(screen.getByRole("button", { name: "Change" }));
  await waitFor(() => expect(currentText("agent_1")).toBe("Use euros"));
  expect(requests.map(({ path }) => path)).toEqual(["/api/messages/msg_1/acts/1/undo"]);
});

it.each([
  ["answered", "/api/inbox/answered_1/answer", '{"text":"Use pounds","note":"","always":false}'],
  ["remembered", "/api/agents/agent_1/memories", '{"content":"Use pounds"}'],
] as const)("gives other words for what was %s", async (kind, path, body) => {
  show(act(kind, kind === "remembered" ? { about: "memory_1" } : {}));
  await userEvent.click(screen.getByRole("button", { name: "Change" }));
  await userEvent.clear(screen.getByRole("textbox"));
  await userEvent.type(screen.getByRole("textbox"), "Use pounds{Enter}");
  await waitFor(() => expect(requests).toHaveLength(2));
  expect(requests).toEqual([{ path: "/api/messages/msg_1/acts/0/undo", body: "" }, { path, body }]);
});
