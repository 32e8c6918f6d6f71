/** Lazy overlays: dialogs, side panels and menus, whose code is loaded when the first of them is opened. */
import { cloneElement, type ComponentProps, type KeyboardEvent, type MouseEvent, type ReactElement, type ReactNode, useEffect, useState } from "react";
import { loadChunk } from "@/live/chunks";
import type { DialogProps, SheetProps } from "@/ui/overlays";

type Overlays = typeof import("@/ui/overlays");
let overlays: Overlays | undefined;
let loading: Promise<void> | undefined;
const loadOverlays = (): Promise<void> => (loading ??= loadChunk(() => import("@/ui/overlays")).then((loaded) => void (overlays = loaded)));

/** Return the overlays once they are loaded; load them when they are wanted. */
function useOverlays(isWanted: boolean): Overlays | undefined {
  const [, setIsLoaded] = useState(false);
  useEffect(() => {
    if (!isWanted || overlays) return;
    let isMounted = true;
    void loadOverlays().then(() => isMounted && setIsLoaded(true));
    return () => void (isMounted = false);
  }, [isWanted]);
  return overlays;
}

export function Dialog(props: DialogProps) {
  const loaded = useOverlays(props.open);
  return loaded ? <loaded.Dialog {...props} /> : null;
}

export function Sheet(props: SheetProps) {
  const loaded = useOverlays(props.open);
  return loaded ? <loaded.Sheet {...props} /> : null;
}

/** A menu behind a button. `trigger` is the button. */
export function Menu({ trigger, children }: { trigger: ReactElement<ComponentProps<"button">>; children: ReactNode }) {
  const [openedBy, setOpenedBy] = useState<"key" | "pointer" | null>(null);
  const loaded = useOverlays(openedBy !== null);
  if (openedBy && loaded) return <loaded.Menu trigger={trigger} isOpenedByKey={openedBy === "key"}>{children}</loaded.Menu>;
  return cloneElement(trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    // A key makes a click without a count.
    onClick: (event: MouseEvent) => setOpenedBy(event.detail === 0 ? "key" : "pointer"),
    onPointerEnter: () => void loadOverlays(),
    onFocus: () => void loadOverlays(),
    onKeyDown: (event: KeyboardEvent) => event.key === "ArrowDown" && setOpenedBy("key"),
  });
}

/** Entries of a menu. They are rendered in an open menu only, which is loaded by then. */
export const MenuItem = (props: ComponentProps<Overlays["MenuItem"]>) => overlays && <overlays.MenuItem {...props} />;
export const MenuSeparator = () => overlays && <overlays.MenuSeparator />;
