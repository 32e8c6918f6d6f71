/** Toast: messages at the edge of the page. The library that shows them is loaded with the first one. */
import type { ReactElement } from "react";
import type { ExternalToast, toast as libraryToast } from "sonner";
import { create } from "zustand";

type Id = string | number;
type Render = (id: Id) => ReactElement;

/** Whether there was a toast, so that `ui/Toaster` is loaded. */
export const useToaster = create<{ isWanted: boolean }>(() => ({ isWanted: false }));

/** The place of toasts that wait for the person, apart from those that only report something. */
export const QUESTIONS = "questions";
/** A toast that is as young as this tells of the action that has changed the page. It stays. */
const YOUNG_MS = 1_000;

let library: typeof libraryToast | undefined;
let early: { id: Id; render: Render; options: ExternalToast }[] = [];
let count = 0;
/** When the toasts were made that only report something. */
const reports = new Map<Id, number>();

/** Show the toasts that were made before the library was loaded. `ui/Toaster` calls this once it is on the page. */
export function attachToaster(loaded: typeof libraryToast): void {
  library = loaded;
  for (const { id, render, options } of early) library.custom(render, { ...options, id });
  early = [];
}

export const toast = {
  /** Show a toast that only reports something. It goes away with the page. */
  report(render: Render, options: ExternalToast = {}): void {
    reports.set(toast.custom(render, { ...options, onAutoClose: ({ id }) => reports.delete(id) }), Date.now());
  },
  /** Show a toast with something to press; return its id. */
  custom(render: Render, options: ExternalToast = {}): Id {
    const id = options.id ?? `toast-${++count}`;
    if (library) library.custom(render, { ...options, id });
    else early.push({ id, render, options });
    useToaster.setState({ isWanted: true });
    return id;
  },
  dismiss(id: Id): void {
    early = early.filter((one) => one.id !== id);
    library?.dismiss(id);
  },
  /** Take away what reports something about the page that the person has left. */
  leavePage(): void {
    for (const [id, madeAt] of reports) {
      if (Date.now() - madeAt < YOUNG_MS) continue;
      reports.delete(id);
      toast.dismiss(id);
    }
  },
};
