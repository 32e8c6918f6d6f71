/** Shortcuts: the keyboard shortcuts. Single keys work outside text fields and dialogs only, and while no message is begun. */
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { openQuery, overviewQuery, queryClient } from "@/api/queries";
import { keepFocus } from "@/shell/focusKeeper";
import { beginGo, followsGo } from "@/parts/goKeys";
import { isField, isForMessage, isModal, keepForPalette, openPalette } from "@/shell/openPalette";
import { sidebarRows, sortTeams } from "@/shell/sidebarRows";
import { questionAfter, unansweredItems } from "@/parts/unanswered";
import { isSettledForKeys } from "@/parts/settled";
import { useShell } from "@/parts/shellState";
import { SCREENS } from "@/views";

export function Shortcuts() {
  const navigate = useNavigate();
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  useEffect(keepFocus, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { setOpen, update, singleKeys, sidebarHidden } = useShell.getState();
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return openPalette();
      }
      if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        return stepMember(event.key === "ArrowUp" ? -1 : 1);
      }
      if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys || isField(event.target) || isModal() || isForMessage(event)) return;
      if (runShortcut(event, { setOpen, update, sidebarHidden })) event.preventDefault();
    };
    const go = (to: string | null | undefined) => {
      if (!to) return false;
      void navigate({ to: to as "/" });
      return true;
    };
    const team = /^\/t\/([^/]+)/.exec(pathname)?.[1] ?? overviewTeams()[0]?.id;
    /** Open the previous or next member, team by team in the order of the sidebar. */
    const stepMember = (offset: number) => {
      const { pinned, teamFilter, showsFinished } = useShell.getState();
      const rows = sidebarRows(sortTeams(overviewTeams(), pinned), { current: team, pinned, filter: teamFilter, showsFinished });
      const pages = rows.flatMap((row) => (row.kind === "team" ? row.team.members.map((member) => `/t/${row.team.id}/a/${member.id}`) : []));
      go(pages[(pages.indexOf(pathname) + offset + pages.length) % pages.length]);
    };
    const runShortcut = (event: KeyboardEvent, shell: Pick<ReturnType<typeof useShell.getState>, "setOpen" | "update" | "sidebarHidden">): boolean => {
      const { key } = event;
      if (followsGo(event)) {
        if (key === "i") return go("/inbox");
        if (key === "c") return go(team && `/t/${team}`);
        const screen = SCREENS.find((one) => one.key === key);
        return screen && team ? go(`/t/${team}/${screen.path}`) : false;
      }
      switch (key) {
        case "g":
          beginGo();
          return true;
        case "n":
        case "c":
          shell.setOpen("newTeam", true);
          return true;
        case "?":
          shell.setOpen("shortcutsDialog", true);
          return true;
        case "[":
          shell.update({ sidebarHidden: !shell.sidebarHidden });
          return true;
        case "r":
          document.getElementById("composer")?.focus();
          return true;
        // These keys click the visible buttons, so that a key and its button always do the same.
        case "/":
          return clickLast("#find") || (openPalette(), true);
        case "v":
          return clickLast("#tools");
        case "]":
          return clickLast("#details");
        case "Escape":
          return clickLast("#to-end");
        case "a":
          return go(nextQuestion(location.pathname + location.search));
        default:
          return /^[1-9]$/.test(key) && choose(key);
      }
    };
    addEventListener("keydown", onKey);
    addEventListener("keydown", keepForPalette, { capture: true });
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("keydown", keepForPalette, { capture: true });
    };
  }, [navigate, pathname]);
  return null;
}

/** Choose an option of the marked card. In a request for approval the key only goes to the button: a second key, Enter, decides. */
function choose(key: string): boolean {
  const card = document.activeElement?.closest("[data-question]") ?? document.querySelector("[data-question][data-marked]");
  const button = card?.querySelector<HTMLButtonElement>(`[data-option="${key}"], [data-choose="${key}"]`);
  if (!button || !isOnScreen(button) || !isSettledForKeys(button.closest("[data-form]")!)) return false;
  if (button.dataset.choose) button.focus();
  else button.click();
  return true;
}

/** Whether the element is visible. The virtualizer also renders rows outside the visible part; a key must not answer a question that the person does not see. */
function isOnScreen(element: HTMLElement): boolean {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return at !== null && element.contains(at);
}

/** Click the last such element, which is the newest: conversations grow downwards. Return whether there was one. */
function clickLast(selector: string): boolean {
  const found = [...document.querySelectorAll<HTMLElement>(selector)].at(-1);
  found?.click();
  return found !== undefined;
}

const overviewTeams = () => queryClient.getQueryData(overviewQuery.queryKey) ?? [];

/** Return the URL of the open question after the one that the page at `href` shows, or null if there is none. The questions of the team on screen come first; in each part, those that nobody waits for any more come last. */
export function nextQuestion(href: string, items = unansweredItems(queryClient.getQueryData(openQuery().queryKey)?.items)): string | null {
  const team = /^\/t\/([^/]+)/.exec(href)?.[1];
  const inTeam = items.filter((item) => item.message.team_id === team);
  const next = questionAfter(href, [...inTeam, ...items.filter((item) => item.message.team_id !== team)]);
  if (!next) return null;
  const { team_id, sender, id } = next.message;
  const members = overviewTeams().find((one) => one.id === team_id)?.members;
  return members?.some((one) => one.id === sender) ? `/t/${team_id}/a/${sender}?at=${id}` : `/inbox/${id}`;
}
