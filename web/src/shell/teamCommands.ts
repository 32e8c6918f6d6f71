/** Team commands: what a person can do with a team as a whole. The menu of a team and the palette list them. */
import { Archive, Coins, Copy, Cpu, Microscope, Pause, Play, Settings2, Square, type LucideIcon } from "lucide-react";
import type { Team, TeamOverview } from "@/api/client";
import { useLive } from "@/live";
import { screenHref } from "@/lib/screens";
import { useShell } from "@/parts/shellState";
import { canStartAgain, isAtWork, runTeamAction } from "@/parts/teamState";

export interface TeamCommand {
  label: string;
  icon: LucideIcon;
  /** Other words by which the palette finds it. */
  keywords?: string[];
  isDisabled?: boolean;
  /** Whether it holds up the team's work. While all work is stopped, the palette does not offer it: "stop" must find what says so. */
  isHalting?: boolean;
  run: () => void;
}

/** Return the commands for a team. `go` opens a page. */
export function useTeamCommands(go: (to: string) => void): (team: Team | TeamOverview) => TeamCommand[] {
  const isAway = useLive((state) => state.connection !== "live");
  const { update } = useShell();
  return (team) => {
    const isArchived = team.status === "archived";
    const ask = (what: "stop" | "archive" | "research") => () => update({ asked: { what, team } });
    const settings = (section: string) => () => go(`${screenHref(team.id, "settings")}${section}`);
    const isPaused = team.status === "paused";
    const resume = { label: isPaused ? "Resume the team" : "Start the team again", icon: Play, keywords: ["continue"], isDisabled: isAway, run: () => void runTeamAction(team, "resume") };
    const pause = { label: "Pause the team", icon: Pause, isHalting: true, isDisabled: isAway || !isAtWork(team.state), run: () => void runTeamAction(team, "pause") };
    return [
      isPaused || canStartAgain(team) ? resume : pause,
      { label: "Stop the team", icon: Square, keywords: ["cancel"], isHalting: true, isDisabled: isAway || !isAtWork(team.state), run: ask("stop") },
      { label: "Research a question", icon: Microscope, isDisabled: isAway || isArchived || !team.coordinator_id, run: ask("research") },
      { label: "Change the budget", icon: Coins, keywords: ["limits", "money"], run: settings("#budget") },
      { label: "Change the model", icon: Cpu, run: settings("#model") },
      { label: "Set a new goal", icon: Settings2, run: settings("#goal") },
      { label: "Duplicate the team", icon: Copy, keywords: ["copy team"], run: () => update({ newTeam: true, copies: team.id }) },
      { label: "Archive the team", icon: Archive, isDisabled: isAway || isArchived, run: ask("archive") },
    ];
  };
}
