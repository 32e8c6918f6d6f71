/** PageTitle: names the page in the browser's tab, and takes the focus to the heading of a page that was opened. */
import { useQuery } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { agentsQuery, inboxItemQuery, openQuery, teamQuery } from "@/api/queries";
import { capitalize } from "@/lib/format";
import { titleOf } from "@/parts/entries";
import { FOLD_PX, useNarrow } from "@/parts/useNarrow";
import { isModal } from "@/shell/openPalette";
import { SCREENS } from "@/views";

const PAGES: Record<string, string> = { inbox: "Inbox", settings: "Settings", models: "Models", archive: "Archived teams", operations: "Operations" };
/** Screens whose address ends with the path of a file. */
const WITH_FILES = new Set(["files", "memory"]);
/** So long a page may load before it has its heading. */
const LOAD_MS = 3_000;

/** Names of what the address shows, as far as they are loaded. */
interface Names {
  team?: string;
  member?: string;
  item?: string;
}

const partsOf = (pathname: string): string[] => pathname.split("/").slice(1).filter(Boolean).map(decoded);

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return what a page is called, and what it belongs to, the inner one first. */
export function pageNames(pathname: string, { team, member, item }: Names): string[] {
  const [top, id, name, ...rest] = partsOf(pathname);
  if (top === "inbox") return listed(id === "digest" ? "Needs review" : id && item, "Inbox");
  if (top !== "t") return listed(PAGES[top ?? ""]);
  if (name === "a") return listed(member && capitalize(member), team);
  const screen = SCREENS.find((one) => one.path === name);
  return listed(screen && WITH_FILES.has(screen.path) ? rest.at(-1) : "", screen?.label, team);
}

const listed = (...names: (string | undefined)[]): string[] => names.filter((one): one is string => Boolean(one));

/** Return the part of the address that says which page it is: the items of a list share their page. */
export function pageOf(pathname: string): string {
  const parts = partsOf(pathname);
  return parts.slice(0, parts[0] !== "t" ? 1 : parts[2] === "a" ? 4 : 3).join("/");
}

export function PageTitle() {
  const { pathname } = useLocation();
  const [top, id = "", name, agent] = partsOf(pathname);
  const inbox = useQuery(openQuery()).data;
  const team = useQuery({ ...teamQuery(id), enabled: top === "t" && id !== "" }).data;
  const agents = useQuery({ ...agentsQuery(id), enabled: top === "t" && name === "a" }).data;
  const item = useQuery({ ...inboxItemQuery(id), enabled: top === "inbox" && id !== "" && id !== "digest" }).data;
  const names = pageNames(pathname, { team: team?.name, member: agents?.find((one) => one.id === agent)?.name, item: item && titleOf(item) });
  const count = inbox?.open || (inbox?.unread ?? 0);
  const title = `${count > 0 ? `(${count}) ` : ""}${[...names, "agiraph"].join(" · ")}`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  // Where the list folds away, each of its items is a page of its own.
  const isFolded = useNarrow(FOLD_PX);
  useFocusOnHeading(isFolded && top === "inbox" ? pathname : pageOf(pathname));
  return null;
}

/** Focus the heading of each page that the person opens, unless the page puts the focus elsewhere: a screen reader reads it, and Tab goes on from there. */
function useFocusOnHeading(page: string): void {
  const shown = useRef(page);
  useEffect(() => {
    if (shown.current === page) return;
    shown.current = page;
    // The first page opens by itself: there, Tab begins with the link to the content.
    if (!navigator.userActivation.hasBeenActive) return;
    const main = document.getElementById("main");
    const focus = () => {
      const heading = [...(main?.querySelectorAll<HTMLElement>("h1") ?? [])].find((one) => one.checkVisibility());
      const { activeElement } = document;
      if (!main || !heading || isModal() || (activeElement !== main && main.contains(activeElement) && activeElement?.checkVisibility())) return;
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(focus);
    const stop = () => {
      observer.disconnect();
      clearTimeout(timer);
      for (const event of ["keydown", "pointerdown"]) removeEventListener(event, stop, { capture: true });
      removeEventListener("focusin", focus);
    };
    const timer = setTimeout(stop, LOAD_MS);
    // A page that loads has a heading that is replaced; a dialog that closes gives the focus back.
    observer.observe(document.body, { childList: true, subtree: true });
    addEventListener("focusin", focus);
    for (const event of ["keydown", "pointerdown"]) addEventListener(event, stop, { capture: true });
    focus();
    return stop;
  }, [page]);
}
