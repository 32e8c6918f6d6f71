/** Shell: the frame around every screen. */
import { Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { Toaster } from "sonner";
import { useLive } from "@/live";
import { keep } from "@/lib/storage";
import { Sheet } from "@/ui";
import { Attention } from "@/shell/Notifications";
import { ConnectionBanner } from "@/shell/Connection";
import { SignIn } from "@/shell/statusPages";
import { Shortcuts } from "@/shell/Shortcuts";
import { Sidebar } from "@/shell/Sidebar";
import { useShell } from "@/shell/state";

const Palette = lazy(() => import("@/shell/CommandPalette"));
const NewTeam = lazy(() => import("@/shell/NewTeam"));
const KeysSheet = lazy(() => import("@/shell/ShortcutsDialog"));

export function Shell() {
  const phase = useLive((state) => state.phase);
  const { palette, newTeam, keysSheet, rail, railHidden, open } = useShell();
  const { pathname, href } = useLocation();
  useEffect(() => {
    open("rail", false);
    open("panelSheet", false);
    if (pathname !== "/" && pathname !== "/settings") keep("last-place", href);
  }, [pathname, href, open]);

  if (phase === "signed-out") return <SignIn />;
  return (
    <div className="flex h-full">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-ink focus:px-3 focus:py-2 focus:text-paper">
        Skip to the content
      </a>
      {!railHidden && (
        <div className="hidden w-[264px] shrink-0 border-r border-line md:flex">
          <Sidebar />
        </div>
      )}
      <Sheet open={rail} onOpenChange={(now) => open("rail", now)} side="left" title="Teams">
        <Sidebar />
      </Sheet>
      <main id="main" tabIndex={-1} className="flex min-w-0 flex-1 flex-col outline-none">
        <ConnectionBanner />
        <Outlet />
      </main>
      <Shortcuts />
      <Attention />
      <Toaster position="top-right" offset={{ top: 60, right: 16 }} mobileOffset={{ top: 60, right: 12, left: 12 }} className="font-sans!" visibleToasts={3} toastOptions={{ unstyled: true }} />
      <Suspense fallback={null}>
        {palette && <Palette />}
        {newTeam && <NewTeam />}
        {keysSheet && <KeysSheet />}
      </Suspense>
    </div>
  );
}
