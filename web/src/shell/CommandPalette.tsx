/** Palette: everything there is to go to and to do, by a few letters. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Inbox, Keyboard, Moon, Plus, Settings, Sun } from "lucide-react";
import type { ReactNode } from "react";
import { agentsQuery, inboxQuery, teamsQuery } from "@/api/queries";
import { capital } from "@/lib/format";
import { Dot, type State } from "@/ui";
import { needsYou } from "@/shell/unanswered";
import { useShell } from "@/shell/state";
import { SCREENS } from "@/views";

/** Beginnings of words count, whole beginnings most; letters strewn about do not. */
export function rank(value: string, search: string, keywords: string[] = []): number {
  const wanted = search.toLowerCase().trim();
  const scored = [value, ...keywords].map((text, place) => {
    const words = text.toLowerCase();
    if (words.startsWith(wanted)) return 1 - place * 0.05;
    if (words.split(/[\s·/_-]+/).some((word) => word.startsWith(wanted))) return 0.8 - place * 0.05;
    if (wanted.split(/\s+/).every((part) => words.includes(part))) return 0.5 - place * 0.05;
    return 0;
  });
  return Math.max(...scored);
}

export default function Palette() {
  const { open, set } = useShell();
  const navigate = useNavigate();
  const teams = useQuery(teamsQuery).data?.filter((team) => team.status !== "archived") ?? [];
  const members = useQueries({ queries: teams.map((team) => agentsQuery(team.id)) }).flatMap((one) => one.data ?? []);
  const asks = needsYou(useQuery(inboxQuery).data?.items);
  const close = () => open("palette", false);
  const go = (to: string) => {
    close();
    void navigate({ to: to as "/" });
  };
  const isDark = document.documentElement.dataset.theme === "dark";
  return (
    <Command.Dialog
      open
      onOpenChange={(now) => open("palette", now)}
      label="Jump to"
      filter={rank}
      overlayClassName="fixed inset-0 z-40 bg-black/40"
      contentClassName="fixed top-[12vh] left-1/2 z-50 w-[min(600px,calc(100vw-24px))] -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-surface shadow-high"
    >
      <Command.Input placeholder="Jump to a member, a board, an answer…" className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none" />
      <Command.List className="scroll max-h-[56vh] p-2">
        <Command.Empty className="p-6 text-center text-sm text-ink-3">Nothing matches.</Command.Empty>
        {asks.length > 0 && (
          <Part name="Needs you">
            {asks.map((item) => (
              <Entry key={item.message.id} value={`${item.message.title || item.message.text.slice(0, 80)} ${item.message.id}`} onSelect={() => go(`/inbox/${item.message.id}`)} icon={<Dot state="waiting_for_you" />} note={capital(item.message.sender_name)}>
                {item.message.title || item.message.text.slice(0, 80)}
              </Entry>
            ))}
          </Part>
        )}
        {teams.map((team) => (
          <Part key={team.id} name={team.name}>
            {members
              .filter((agent) => agent.team_id === team.id && agent.retired_at === null)
              .map((agent) => (
                <Entry key={agent.id} value={`${agent.name} ${agent.id}`} keywords={[agent.role, team.name]} onSelect={() => go(`/t/${team.id}/a/${agent.id}`)} icon={<Dot state={agent.status as State} />} note={agent.role}>
                  {capital(agent.name)}
                </Entry>
              ))}
            {SCREENS.filter((screen) => screen.isListed).map((screen) => (
              <Entry key={screen.path} value={`${screen.label} ${team.id}`} keywords={[team.name]} onSelect={() => go(`/t/${team.id}/${screen.path}`)} icon={<screen.icon />} note={team.name}>
                {screen.label}
              </Entry>
            ))}
          </Part>
        ))}
        <Part name="Do">
          <Entry value="Inbox" onSelect={() => go("/inbox")} icon={<Inbox />}>
            Inbox
          </Entry>
          <Entry
            value="New team"
            onSelect={() => {
              close();
              open("newTeam", true);
            }}
            icon={<Plus />}
          >
            New team
          </Entry>
          <Entry
            value={isDark ? "Light theme" : "Dark theme"}
            onSelect={() => {
              set({ theme: isDark ? "light" : "dark" });
              close();
            }}
            icon={isDark ? <Sun /> : <Moon />}
          >
            {isDark ? "Light theme" : "Dark theme"}
          </Entry>
          <Entry
            value="Keyboard shortcuts"
            onSelect={() => {
              close();
              open("keysSheet", true);
            }}
            icon={<Keyboard />}
          >
            Keyboard shortcuts
          </Entry>
          <Entry value="Settings" onSelect={() => go("/settings")} icon={<Settings />}>
            Settings
          </Entry>
        </Part>
      </Command.List>
    </Command.Dialog>
  );
}

const Part = ({ name, children }: { name: string; children: ReactNode }) => (
  <Command.Group heading={name} className="[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1.5 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-semibold [&_[cmdk-group-heading]]:text-ink-3">
    {children}
  </Command.Group>
);

function Entry({ value, keywords, onSelect, icon, note, children }: { value: string; keywords?: string[]; onSelect: () => void; icon: ReactNode; note?: string; children: ReactNode }) {
  return (
    <Command.Item
      value={value}
      keywords={keywords}
      onSelect={onSelect}
      className="flex h-9 cursor-pointer items-center gap-3 rounded-sm px-2.5 text-sm data-[selected=true]:bg-hover pointer-coarse:h-11 [&_svg]:size-4 [&_svg]:text-ink-3"
    >
      <span className="flex w-4 justify-center">{icon}</span>
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {note && <span className="max-w-[45%] truncate text-xs text-ink-3">{note}</span>}
    </Command.Item>
  );
}
