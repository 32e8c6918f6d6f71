/** Shell: the frame around every screen: sidebar, tabs of a phone, banner, dialogs, shortcuts and toasts. */
import { useQuery } from "@tanstack/react-query";
import { Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { openQuery, tellTimeZone } from "@/api/queries";
import type { Known } from "@/shell/Notifications";
import { Suspense, useEffect, useRef, useState } from "react";
import { useLive } from "@/live";
import { lazyChunk } from "@/live/chunks";
import { Loading, Sheet } from "@/ui";
import { ConnectionBanner } from "@/shell/Connection";
import { CommandPalette } from "@/shell/openPalette";
import { PHONE_PX, useNarrow } from "@/parts/useNarrow";
import { PageTitle } from "@/shell/PageTitle";
import { SignIn } from "@/parts/statusPages";
import { Shortcuts } from "@/shell/Shortcuts";
import { Sidebar } from "@/shell/Sidebar";
import { useShell } from "@/parts/shellState";
import { useToaster } from "@/ui/toast";

const Notifications = lazyChunk(() => import("@/shell/Notifications"));
const Toaster = lazyChunk(() => import("@/ui/Toaster"));
const SandboxWarning = lazyChunk(() => import("@/shell/SandboxWarning"));
const StopDialog = lazyChunk(() => import("@/views/operations/StopDialog"));
const ShortcutsDialog = lazyChunk(() => import("@/shell/ShortcutsDialog"));
const TeamDialogs = lazyChunk(() => import("@/shell/TeamDialogs"));
const BottomTabs = lazyChunk(() => import("@/shell/TeamTabs").then((loaded) => ({ default: loaded.BottomTabs })));

export function Shell() {
  const connection = useLive((state) => state.connection);
  const { palette, newTeam, shortcutsDialog, stopDialog, asked, sidebarDrawer, sidebarHidden, setOpen } = useShell();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  useEffect(() => {
    // Navigation closes the drawers that cover the page on narrow screens.
    setOpen("sidebarDrawer", false);
    setOpen("detailsSheet", false);
  }, [pathname, setOpen]);
  useEffect(() => {
    // The field for a new team is on the home page, which gives it the focus.
    if (!newTeam) return;
    setOpen("sidebarDrawer", false);
    if (pathname !== "/") void navigate({ to: "/" });
  }, [newTeam, pathname, navigate, setOpen]);

  const isPhone = useNarrow(PHONE_PX);
  const isSettled = useSettled();
  const isSignedIn = isSettled && connection === "live";
  useEffect(() => {
    // A token that may only read cannot tell it; then times stay in UTC.
    if (isSignedIn) tellTimeZone().catch(() => undefined);
  }, [isSignedIn]);
  const knownAtStart = useKnownAtStart();
  if (connection === "signed-out") return <SignIn />;
  return (
    <div className="flex h-full">
      {/* The first focusable element: people who use the keyboard can skip the sidebar. */}
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-1 focus:bg-ink focus:px-3 focus:py-2 focus:text-paper">
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
      <div className="flex min-w-0 flex-1 flex-col">
        <main id="main" tabIndex={-1} className="relative flex min-h-0 flex-1 flex-col">
          <ConnectionBanner />
          {isSettled && (
            <Suspense fallback={null}>
              <SandboxWarning />
            </Suspense>
          )}
          <Suspense fallback={<Loading label="Opening the page" />}>
            <Outlet />
          </Suspense>
        </main>
        {isPhone && (
          <Suspense fallback={<div className="h-14 shrink-0 border-t border-line" />}>
            <BottomTabs />
          </Suspense>
        )}
      </div>
      <PageTitle />
      <Shortcuts />
      {isSettled && knownAtStart && (
        <Suspense fallback={null}>
          <Notifications knownAtStart={knownAtStart} />
        </Suspense>
      )}
      <Toasts />
      <Suspense fallback={null}>
        {palette && <CommandPalette />}
        {shortcutsDialog && <ShortcutsDialog />}
        {stopDialog && <StopDialog />}
        {asked && <TeamDialogs />}
      </Suspense>
    </div>
  );
}

/** How long the first screen has the line for itself. */
const SETTLE_MS = 1_200;

/** Whether the first screen had time to load. What it does not need waits: on a slow line, every file counts. */
function useSettled(): boolean {
  const [isSettled, setIsSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsSettled(true), SETTLE_MS);
    return () => clearTimeout(timer);
  }, []);
  return isSettled;
}

/** Return what was open in the inbox when the page was opened, and its newest item: the person is told of later ones. */
function useKnownAtStart(): Known | undefined {
  const inbox = useQuery(openQuery()).data;
  const known = useRef<Known>(undefined);
  known.current ??= inbox && { open: new Set(inbox.items.map((item) => item.message.id)), newest: inbox.newest };
  return known.current;
}

function Toasts() {
  const isWanted = useToaster((state) => state.isWanted);
  return isWanted ? (
    <Suspense fallback={null}>
      <Toaster />
    </Suspense>
  ) : null;
}
