/** Toaster: the places where toasts appear: one question at the top, reports at the bottom. */
import { useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Toaster as Library, toast as library } from "sonner";
import { attachToaster, QUESTIONS, toast } from "@/ui/toast";

/** On a narrow screen a question would cover the dialog that is open. It is hidden until the dialog is closed. */
const BEHIND_DIALOGS = "max-md:in-[body:has([role=dialog][data-state=open])]:hidden";
/** Reports would cover a menu, which opens at the lower edge there. */
const BEHIND_MENUS = "max-md:in-[body:has([role=menu])]:hidden";
const SHARED = { className: "font-sans!" };
/** How far reports are from the lower edge: on an agent's page above the composer. */
const EDGE = 16;
const ABOVE_COMPOSER = 132;
/** The height of the tabs at the lower edge of a phone. */
const PHONE_TABS = 56;

export default function Toaster() {
  const frame = useRef<HTMLDivElement>(null);
  // The library loses toasts that are made before its component is mounted. Effects of children run first.
  useEffect(() => attachToaster(library), []);
  const { pathname } = useLocation();
  const shownFor = useRef(pathname);
  useEffect(() => {
    // Not when it appears: the report that it was loaded for may have waited for its file.
    if (shownFor.current !== pathname) toast.leavePage();
    shownFor.current = pathname;
  }, [pathname]);
  const bottom = /^\/t\/[^/]+\/a\//.test(pathname) ? ABOVE_COMPOSER : EDGE;
  useEffect(() => {
    // The library notes what had the focus before the toasts, and gives it back when it leaves them or when they disappear: Tab would never get past
    // a toast, and a field that was left long ago would take the keys. It notes nothing for an element that cannot be dismissed.
    const note = ({ target }: FocusEvent) => target instanceof HTMLElement && (target.dataset.dismissible = "false");
    const { current } = frame;
    current?.addEventListener("focusin", note);
    return () => current?.removeEventListener("focusin", note);
  }, []);
  return (
    <div ref={frame} className="contents">
      {/* The pointer goes through a report to what is below it; its button takes the pointer. */}
      <Library {...SHARED} className={`${SHARED.className} ${BEHIND_MENUS}`} visibleToasts={3} containerAriaLabel="Reports" position="bottom-right" offset={{ bottom, right: 16 }} mobileOffset={{ bottom: bottom + PHONE_TABS, right: 12, left: 12 }} toastOptions={{ unstyled: true, className: "pointer-events-none" }} expand />
      {/* The last one: if there are both, Alt T goes to the question. */}
      <Library {...SHARED} className={`${SHARED.className} ${BEHIND_DIALOGS}`} id={QUESTIONS} visibleToasts={1} containerAriaLabel="Questions" position="top-right" offset={{ top: 60, right: 16 }} mobileOffset={{ top: 60, right: 12, left: 12 }} toastOptions={{ unstyled: true }} />
    </div>
  );
}
