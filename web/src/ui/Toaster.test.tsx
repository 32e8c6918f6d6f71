// @vitest-environment jsdom
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { act, render, screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { toast } from "@/ui/toast";
import Toaster from "@/ui/Toaster";

it("toasts do not take the focus from where the person has put it, neither when it leaves them nor when they disappear", async () => {
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {} }));
  vi.stubGlobal("scrollTo", () => {});
  const page = () => (
    <>
      <button>Before</button>
      <button>After</button>
      <Toaster />
    </>
  );
  render(<RouterProvider router={createRouter({ routeTree: createRootRoute({ component: page }), history: createMemoryHistory() })} />);
  const after = await screen.findByText("After");
  let id: string | number = "";
  act(() => void (id = toast.custom(() => <button>Undo</button>)));
  const undo = await screen.findByText("Undo");
  act(() => screen.getByText("Before").focus());
  act(() => undo.focus());
  act(() => after.focus());
  expect(document.activeElement).toBe(after);
  act(() => toast.dismiss(id));
  await waitFor(() => expect(screen.queryByText("Undo")).toBeNull());
  // The library looks at its list again when it is drawn the next time.
  act(() => void toast.custom(() => <p>Saved</p>));
  await screen.findByText("Saved");
  expect(document.activeElement).toBe(after);
});
