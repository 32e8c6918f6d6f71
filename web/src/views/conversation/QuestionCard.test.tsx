// @vitest-environment jsdom
import { createRootRoute, createRouter, RouterContextProvider } from "@tanstack/react-router";
import { act, fireEvent, render as renderIn, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactElement } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Message } from "@/api/client";
import { QuestionCard } from "@/views/conversation/QuestionCard";

/** Marks that wait to be seen. jsdom draws nothing, so the test says what is on screen. */
let waiting = new Map<Element, (entries: { isIntersecting: boolean; target: Element }[]) => void>();

class Observer {
  constructor(private readonly report: (entries: { isIntersecting: boolean; target: Element }[]) => void) {}
  observe = (mark: Element) => waiting.set(mark, this.report);
  unobserve = (mark: Element) => waiting.delete(mark);
  disconnect = () => waiting.forEach((report, mark) => report === this.report && waiting.delete(mark));
}

const router = createRouter({ routeTree: createRootRoute() });
const render = (element: ReactElement) => renderIn(element, { wrapper: ({ children }) => <RouterContextProvider router={router as never}>{children}</RouterContextProvider> });
const see = (...marks: Element[]) => act(() => marks.forEach((target) => waiting.get(target)?.([{ isIntersecting: true, target }])));
const marks = () => [...document.querySelectorAll("[data-end]")];
const isOpen = () => !document.querySelector<HTMLButtonElement>("[data-choose='1']")!.disabled;
const card = (id: string, tool: string, command: string) => (
  <QuestionCard id={id} text="May I?" at="2030-01-01T00:00:00Z" kind="approval" asker="Ada" answered={null} message={{ options: [], call: { name: tool, arguments: { command } } } as unknown as Message} />
);

beforeEach(() => {
  waiting = new Map();
  vi.stubGlobal("IntersectionObserver", Observer);
  vi.stubGlobal("ResizeObserver", Observer);
});
afterEach(() => localStorage.clear());

describe("an approval", () => {
  it("opens once every piece of the call was on screen, not at its end", () => {
    render(card("a", "bash", "echo 1\n".repeat(2_000)));
    const all = marks();
    expect(all.length).toBeGreaterThan(150);
    see(...all.slice(0, 4), all.at(-1)!);
    expect(isOpen()).toBe(false);
    see(...all.slice(0, -2));
    expect(isOpen()).toBe(false);
    see(all.at(-2)!);
    expect(isOpen()).toBe(true);
  });

  it("has a mark behind its text, the tool's name, and the name and value of each argument", () => {
    render(card("a", "bash", "ls"));
    expect(marks().map((mark) => mark.parentElement!.textContent)).toEqual(["May I?", "bash", "command", "ls"]);
  });

  it("names the arguments without a value in a line of their own, unlike one with the word null", () => {
    const call = { name: "bash", arguments: { command: "null", network: null, hosts: [null] } };
    render(<QuestionCard id="a" text="May I?" at="2030-01-01T00:00:00Z" kind="approval" asker="Ada" answered={null} message={{ options: [], call } as unknown as Message} />);
    const shown = [...document.querySelectorAll("[data-argument]")];
    expect(shown.map((value) => value.textContent)).toEqual(["null", "1null"]);
    expect(document.querySelector("[data-empty]")!.textContent).toBe("Empty:network");
    expect(marks()).toHaveLength(8);
  });

  it("that takes the place of another one has no note yet and must be read", async () => {
    const { rerender } = render(card("a", "read_file", "ls"));
    see(...marks());
    await userEvent.type(screen.getByRole("textbox"), "Go on");
    expect(isOpen()).toBe(true);
    rerender(card("b", "bash", "ls"));
    expect([isOpen(), (screen.getByRole("textbox") as HTMLInputElement).value]).toEqual([false, ""]);
  });
});

it("an approval says why in the agent's words and what can go wrong, and shows an object as a table to be read", () => {
  const call = { name: "mcp__post", arguments: { body: { to: "all", tags: ["a\u200b"] }, note: "long ".repeat(200) } };
  const message = { options: [], call, reason: "The list is **ready**, so I post it.", risks: ["sends_to_others", "cannot_be_undone"] } as unknown as Message;
  const { container } = render(<QuestionCard id="a" text="May I?" at="2030-01-01T00:00:00Z" kind="approval" asker="Ada" answered={null} message={message} />);
  expect(container.querySelector("[data-reason]")!.textContent).toContain("The list is");
  expect(container.querySelector("[data-risks]")!.textContent).toBe("What can go wrong: it sends something to others, and it cannot be undone.");
  const cells = [...container.querySelectorAll("[data-argument=body] :is(th, td)")];
  expect(cells.map((cell) => [cell.textContent, cell.querySelectorAll("[data-end]").length > 0])).toEqual([["to", true], ["all", true], ["tags", true], ['[\n  "a⟨U+200B⟩"\n]', true]]);
  fireEvent.click(screen.getByRole("button", { name: "Unfold 1,000 characters" }));
  expect(container.querySelector("[data-argument=note]")!.textContent).toBe(`${"long ".repeat(199)}long⟨U+0020⟩`);
});

it("Enter in the note of an approval denies with it, and Shift+Enter begins a new line", () => {
  const send = vi.fn(async (request: Request) => (await request.json(), new Promise<Response>(() => {})));
  vi.stubGlobal("fetch", send);
  render(card("a", "bash", "ls"));
  const field = screen.getByRole("textbox");
  fireEvent.keyDown(field, { key: "Enter" });
  fireEvent.change(field, { target: { value: "No, list it" } });
  fireEvent.keyDown(field, { key: "Enter", shiftKey: true });
  expect([field.tagName, send.mock.calls.length]).toEqual(["TEXTAREA", 0]);
  fireEvent.keyDown(field, { key: "Enter" });
  expect(send).toHaveBeenCalledTimes(1);
});

it("an approval whose task has ended says that nothing starts by itself", () => {
  const { container } = render(<QuestionCard id="a" text="May I?" at="2030-01-01T00:00:00Z" kind="approval" asker="Ada" answered={null} message={null} isLate />);
  expect(container.querySelector("p")!.textContent).toBe("The task that asked has ended, so nothing starts by itself: you are asked what to do with your answer.");
});

it("a question that closed with its task is no answer of the person", () => {
  const why = "Closed: the work that asked has ended.";
  const { container } = render(<QuestionCard id="a" text="Which one?" at="2030-01-01T00:00:00Z" kind="question" asker="Ada" answered={{ text: why, decision: null, isClosed: true, at: "2030-01-01T00:00:00Z" }} message={null} />);
  expect(container.querySelector("[role=group] > p:last-child")!.textContent).toBe(why);
});

it("Enter that ends the composition of a character does not send the answer", () => {
  const send = vi.fn(() => new Promise(() => {}));
  vi.stubGlobal("fetch", send);
  render(<QuestionCard id="a" text="Which one?" at="2030-01-01T00:00:00Z" kind="question" asker="Ada" answered={null} message={null} />);
  const field = screen.getByRole("textbox");
  fireEvent.change(field, { target: { value: "にほ" } });
  fireEvent.keyDown(field, { key: "Enter", isComposing: true });
  fireEvent.keyDown(field, { key: "Enter", keyCode: 229 });
  expect(send).toHaveBeenCalledTimes(0);
  fireEvent.keyDown(field, { key: "Enter", keyCode: 13 });
  expect(send).toHaveBeenCalledTimes(1);
});
