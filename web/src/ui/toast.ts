/** Toast: messages at the edge of the page. The library that shows them is loaded with the first one. */
import type { ReactElement } from "react";
import type { ExternalToast, toast as libraryToast } from "sonner";
import { create } from "zustand";

type Id = string | number;
type Render = (id: Id) => ReactElement;

/** Whether there was a toast, so that `ui/Toaster` is loaded. */
export const useToaster = create<{ isWanted: boolean }>(() => ({ isWanted: false }));

let library: typeof libraryToast | undefined;
let early: { id: Id; render: Render; options: ExternalToast }[] = [];
let count = 0;

/** Show the toasts that were made before the library was loaded. `ui/Toaster` calls this once it is on the page. */
export function attachToaster(loaded: typeof libraryToast): void {
  library = loaded;
  for (const { id, render, options } of early) library.custom(render, { ...options, id });
  early = [];
}

export const toast = {
  /** Show a toast; return its id. */
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
};
