/** Screens: the addresses of a team's screens. `views/index.ts` says what is shown there. */
import type { components } from "@/api/types";

/** The part of the address after the team's: the screen is at /t/{team}/{path} and everything below it. */
export type ScreenPath = "board" | "results" | "files" | "memory" | "triggers" | "cost" | "timeline" | "threads" | "settings";

export interface ScreenProps {
  team: components["schemas"]["TeamView"];
  /** The part of the URL after the screen's path: a file's path, a thread's id. */
  rest: string;
}

/** Return the URL of a screen. */
export function screenHref(team: string, path: ScreenPath, rest = "", search = ""): string {
  const below = rest ? `/${rest.split("/").map(encodeURIComponent).join("/")}` : "";
  return `/t/${team}/${path}${below}${search}`;
}

/** Return the path of a page of agiraph itself if an address leads to one, otherwise null. Such a link opens without a question: it only shows something. */
export function ownPage(href: string): string | null {
  return /^\/(t\/team_[a-z0-9]+\/(a|board|files|results|memory|threads|triggers|cost)(\/|\?|$)|inbox\/)/.test(href) && !href.includes("..") && !href.includes("\\") ? href : null;
}
