/** Shortcuts: single keys outside text fields. */
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { Agent, Team } from "@/api/client";
import { inboxQuery, keys, queryClient } from "@/api/queries";
import { needsYou } from "@/shell/unanswered";
import { useShell } from "@/shell/state";
import { useComposer } from "@/conversation/composerState";
import { SCREENS } from "@/views";

const isField = (target: EventTarget | null): boolean => target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable=true]") !== null;
const isModal = (): boolean => document.querySelector("[role=dialog], [role=menu]") !== null;

export function Shortcuts() {
  const navigate = useNavigate();
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  const afterG = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { open, set, singleKeys, railHidden, panel } = useShell.getState();
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return open("palette", !useShell.getState().palette);
      }
      if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        return step(event.key === "ArrowUp" ? -1 : 1);
      }
      if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys || isField(event.target) || isModal()) return;
      if (act(event.key, { open, set, railHidden, panel })) event.preventDefault();
    };
    const go = (to: string | null | undefined) => {
      if (!to) return false;
      void navigate({ to: to as "/" });
      return true;
    };
    const team = /^\/t\/([^/]+)/.exec(pathname)?.[1] ?? newestTeam()?.id;
    const step = (by: number) => {
      const links = [...document.querySelectorAll<HTMLAnchorElement>('nav a[href*="/a/"]')];
      const now = links.findIndex((link) => link.getAttribute("aria-current") === "page");
      links[(now + by + links.length) % links.length]?.click();
    };
    const act = (key: string, shell: Pick<ReturnType<typeof useShell.getState>, "open" | "set" | "railHidden" | "panel">): boolean => {
      if (afterG.current > Date.now() - 1200) {
        afterG.current = 0;
        if (key === "i") return go("/inbox");
        if (key === "c") return go(team && `/t/${team}`);
        const screen = SCREENS.find((one) => one.key === key);
        return screen && team ? go(`/t/${team}/${screen.path}`) : false;
      }
      switch (key) {
        case "g":
          afterG.current = Date.now();
          return true;
        case "c":
          shell.open("newTeam", true);
          return true;
        case "?":
          shell.open("keysSheet", true);
          return true;
        case "[":
          shell.set({ railHidden: !shell.railHidden });
          return true;
        case "]":
          shell.set({ panel: !shell.panel });
          return true;
        case "r":
          useComposer.setState({ focus: useComposer.getState().focus + 1 });
          return true;
        case "/":
          return press("#find") || (shell.open("palette", true), true);
        case "v":
          return press("#tools");
        case "Escape":
          return press("#to-end");
        case "a":
          return go(nextQuestion(pathname));
        default:
          return /^[1-9]$/.test(key) && press(`[data-question] [data-option="${key}"]`, isInSight);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [navigate, pathname]);
  return null;
}

/** Whether a person can see it: rows a little outside of a thread are drawn too. */
function isInSight(element: HTMLElement): boolean {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return at !== null && element.contains(at);
}

/** Press what is on screen; with several, the last: threads grow downwards. */
function press(selector: string, counts: (element: HTMLElement) => boolean = () => true): boolean {
  const found = [...document.querySelectorAll<HTMLElement>(selector)].filter(counts).at(-1);
  found?.click();
  return found !== undefined;
}

const newestTeam = (): Team | undefined => queryClient.getQueryData<Team[]>(keys.teams)?.at(-1);

function nextQuestion(pathname: string): string | null {
  const items = needsYou(queryClient.getQueryData(inboxQuery.queryKey)?.items);
  const now = items.findIndex((item) => pathname.includes(item.message.id) || pathname.includes(item.message.sender));
  const next = items[(now + 1) % Math.max(1, items.length)];
  if (!next) return null;
  const agents = queryClient.getQueryData<Agent[]>(keys.agents(next.message.team_id));
  return agents?.some((one) => one.id === next.message.sender) ? `/t/${next.message.team_id}/a/${next.message.sender}?at=${next.message.id}` : `/inbox/${next.message.id}`;
}
