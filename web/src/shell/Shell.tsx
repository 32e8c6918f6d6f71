/** Shell: the frame around every screen: sidebar, banner, dialogs, shortcuts and toasts. */
import { Outlet, useLocation } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { Toaster } from "sonner";
import { useLive } from "@/live";
import { lazyChunk } from "@/live/chunks";
import { writeStored } from "@/lib/storage";
import { Loading, Sheet } from "@/ui";
import { Notifications } from "@/shell/Notifications";
import { ConnectionBanner } from "@/shell/Connection";
import { SignIn } from "@/shell/statusPages";
import { Shortcuts } from "@/shell/Shortcuts";
import { Sidebar } from "@/shell/Sidebar";
import { useShell } from "@/shell/state";

const CommandPalette = lazyChunk(() => import("@/shell/CommandPalette"));
const SandboxWarning = lazyChunk(() => import("@/shell/SandboxWarning"));
const NewTeam = lazyChunk(() => import("@/shell/NewTeam"));
const ShortcutsDialog = lazyChunk(() => import("@/shell/ShortcutsDialog"));

export function Shell() {
  const connection = useLive((state) => state.connection);
  const { palette, newTeam, shortcutsDialog, sidebarDrawer, sidebarHidden, setOpen } = useShell();
  const { pathname, href } = useLocation();
  useEffect(() => {
    // Navigation closes the drawers that cover the page on narrow screens.
    setOpen("sidebarDrawer", false);
    setOpen("detailsSheet", false);
    if (pathname !== "/" && pathname !== "/settings") writeStored("last-place", href);
  }, [pathname, href, setOpen]);

  if (connection === "signed-out") return <SignIn />;
  return (
    <div className="flex h-full">
      {/* The first focusable element: people who use the keyboard can skip the sidebar. */}
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-ink focus:px-3 focus:py-2 focus:text-paper">
        Skip to the content
      </a>
      {!sidebarHidden && (
        <div className="hidden w-[264px] shrink-0 border-r border-line md:flex">
          <Sidebar />
        </div>
      )}
      <Sheet open={sidebarDrawer} onOpenChange={(now) => setOpen("sidebarDrawer", now)} side="left" title="Teams">
        <Sidebar />
      </Sheet>
      <main id="main" tabIndex={-1} className="flex min-w-0 flex-1 flex-col outline-none">
        <ConnectionBanner />
        <Suspense fallback={null}>
          <SandboxWarning />
        </Suspense>
        <Suspense fallback={<Loading label="Opening the page" />}>
          <Outlet />
        </Suspense>
      </main>
      <Shortcuts />
      <Notifications />
      <Toaster position="top-right" offset={{ top: 60, right: 16 }} mobileOffset={{ top: 60, right: 12, left: 12 }} className="font-sans!" visibleToasts={3} toastOptions={{ unstyled: true }} />
      <Suspense fallback={null}>
        {palette && <CommandPalette />}
        {newTeam && <NewTeam />}
        {shortcutsDialog && <ShortcutsDialog />}
      </Suspense>
    </div>
  );
}
