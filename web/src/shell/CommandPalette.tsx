/** CommandPalette: jump to any agent, screen or open question, run a command, or search all that the teams have said, done and learned. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Activity, Archive, Inbox, Keyboard, Moon, Plus, Settings, Sun } from "lucide-react";
import { type FocusEvent, type ReactNode, useEffect, useState } from "react";
import type { Found, TeamOverview } from "@/api/client";
import { inboxQuery, overviewQuery, searchQuery } from "@/api/queries";
import { FOUND_GROUPS, foundHref } from "@/shell/found";
import { capitalize, shortTime } from "@/lib/format";
import { StatusDot, type AgentStatus } from "@/ui";
import { unansweredItems } from "@/shell/unanswered";
import { useShell } from "@/shell/state";
import { SCREENS } from "@/views";

/** Return how well an entry matches, 0 to 1: its beginning best, then the beginning of a word, then all typed words anywhere in it. */
export function matchScore(value: string, search: string, keywords: string[] = []): number {
  const query = search.toLowerCase().trim();
  const scores = [value, ...keywords].map((text, index) => {
    const lowered = text.toLowerCase();
    if (lowered.startsWith(query)) return 1 - index * 0.05;
    if (lowered.split(/[\s·/_-]+/).some((word) => word.startsWith(query))) return 0.8 - index * 0.05;
    if (query.split(/\s+/).every((part) => lowered.includes(part))) return 0.5 - index * 0.05;
    return 0;
  });
  return Math.max(...scores);
}

export default function CommandPalette() {
  const { setOpen, update } = useShell();
  const navigate = useNavigate();
  const [typed, setTyped] = useState(() => useShell.getState().paletteText);
  useEffect(() => update({ paletteText: "" }), [update]);
  const { team: current } = useParams({ strict: false });
  const teams = useQuery(overviewQuery).data ?? [];
  const settled = useSettled(typed.trim());
  const search = useQuery(searchQuery(settled));
  const found = search.data ?? [];
  const isSearching = typed.trim().length > 1 && (settled !== typed.trim() || search.isFetching);
  const unanswered = unansweredItems(useQuery(inboxQuery).data?.items);
  const close = () => setOpen("palette", false);
  const go = (to: string) => {
    close();
    void navigate({ to: to as "/" });
  };
  const isDark = document.documentElement.dataset.theme === "dark";
  return (
    <Command.Dialog
      open
      onOpenChange={(isOpen) => setOpen("palette", isOpen)}
      label="Jump to"
      filter={matchScore}
      overlayClassName="fixed inset-0 z-40 bg-black/40"
      contentClassName="fixed top-[12vh] left-1/2 z-50 w-[min(600px,calc(100vw-24px))] -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-surface shadow-high"
    >
      <Command.Input onFocus={caretToEnd} dir="auto" value={typed} onValueChange={setTyped} placeholder="Jump to a member, a board, an answer, or search…" className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none" />
      <Command.List className="scroll max-h-[56vh] p-2">
        {(found.length === 0 || typed.trim().length < 2) && <Command.Empty className="p-6 text-center text-sm text-ink-3">{isSearching ? "Searching…" : "Nothing matches."}</Command.Empty>}
        {unanswered.length > 0 && (
          <Group name="Needs you">
            {unanswered.map((item) => (
              <PaletteItem key={item.message.id} value={`${item.message.title || item.message.text.slice(0, 80)} ${item.message.id}`} onSelect={() => go(`/inbox/${item.message.id}`)} icon={<StatusDot status="waiting_for_you" />} detail={capitalize(item.message.sender_name)}>
                {item.message.title || item.message.text.slice(0, 80)}
              </PaletteItem>
            ))}
          </Group>
        )}
        {shownTeams(teams, current, typed).map((team) => (
          <TeamEntries key={team.id} team={team} go={go} />
        ))}
        <Group name="Actions">
          <PaletteItem value="Inbox" onSelect={() => go("/inbox")} icon={<Inbox />}>
            Inbox
          </PaletteItem>
          <PaletteItem
            value="New team"
            onSelect={() => {
              close();
              setOpen("newTeam", true);
            }}
            icon={<Plus />}
          >
            New team
          </PaletteItem>
          <PaletteItem
            value={isDark ? "Light theme" : "Dark theme"}
            onSelect={() => {
              update({ theme: isDark ? "light" : "dark" });
              close();
            }}
            icon={isDark ? <Sun /> : <Moon />}
          >
            {isDark ? "Light theme" : "Dark theme"}
          </PaletteItem>
          <PaletteItem
            value="Keyboard shortcuts"
            onSelect={() => {
              close();
              setOpen("shortcutsDialog", true);
            }}
            icon={<Keyboard />}
          >
            Keyboard shortcuts
          </PaletteItem>
          <PaletteItem value="Archived teams" onSelect={() => go("/archive")} icon={<Archive />}>
            Archived teams
          </PaletteItem>
          <PaletteItem value="Operations: emergency stop, health, tokens, audit" onSelect={() => go("/operations")} icon={<Activity />}>
            Operations
          </PaletteItem>
          <PaletteItem value="Settings" onSelect={() => go("/settings")} icon={<Settings />}>
            Settings
          </PaletteItem>
        </Group>
        {typed.trim().length > 1 && <FoundEntries words={typed.toLowerCase().split(/\s+/).filter(Boolean)} found={found.filter((one) => one.kind !== "agent" || one.team_id !== current)} go={go} />}
      </Command.List>
    </Command.Dialog>
  );
}

/** Put the caret behind the text that was typed before the palette was there. The dialog selects it, and the next key would replace it. */
function caretToEnd(event: FocusEvent<HTMLInputElement>): void {
  const input = event.currentTarget;
  queueMicrotask(() => input.setSelectionRange(input.value.length, input.value.length));
}

/** Return the text once it has not changed for a moment, so that not every letter asks the server. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Return the teams whose screens are offered: the one on the screen, then those whose name holds a typed word. */
function shownTeams(teams: TeamOverview[], current: string | undefined, typed: string): TeamOverview[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const isNamed = (team: TeamOverview) => words.some((word) => team.name.toLowerCase().includes(word));
  const others = teams.filter((team) => team.id !== current && isNamed(team)).slice(0, 5);
  return [...teams.filter((team) => team.id === current), ...others];
}

function TeamEntries({ team, go }: { team: TeamOverview; go: (to: string) => void }) {
  return (
    <Group name={team.name}>
      {team.members.map((agent) => (
        <PaletteItem key={agent.id} value={`${agent.name} ${agent.id}`} keywords={[agent.role, team.name]} onSelect={() => go(`/t/${team.id}/a/${agent.id}`)} icon={<StatusDot status={agent.status as AgentStatus} />} detail={agent.role}>
          {capitalize(agent.name)}
        </PaletteItem>
      ))}
      {SCREENS.filter((screen) => screen.isListed).map((screen) => (
        <PaletteItem key={screen.path} value={`${screen.label} ${team.id}`} keywords={[team.name]} onSelect={() => go(`/t/${team.id}/${screen.path}`)} icon={<screen.icon />} detail={team.name}>
          {screen.label}
        </PaletteItem>
      ))}
    </Group>
  );
}

/** What the server has found, by kind. The server has compared the words, so nothing of it is filtered here. */
function FoundEntries({ found, words, go }: { found: Found[]; words: string[]; go: (to: string) => void }) {
  return FOUND_GROUPS.map(({ name, kinds, icon: Icon }) => {
    // A note that several agents know is found once for each of them.
    const known = new Set<string>();
    const entries = found.filter((one) => kinds.includes(one.kind) && !known.has(`${one.team_id} ${one.ref} ${one.preview}`) && known.add(`${one.team_id} ${one.ref} ${one.preview}`));
    return entries.length === 0 ? null : (
      <Group key={name} name={name} forceMount>
        {entries.map((one, index) => (
          <Command.Item
            key={`${one.kind} ${one.ref} ${index}`}
            value={`${one.kind} ${one.ref} ${index}`}
            forceMount
            onSelect={() => go(foundHref(one))}
            className="flex cursor-pointer items-start gap-3 rounded-sm px-2.5 py-1.5 text-sm data-[selected=true]:bg-hover pointer-coarse:min-h-11 [&_svg]:size-4 [&_svg]:text-ink-3"
          >
            <span className="mt-0.5 flex w-4 justify-center">
              <Icon />
            </span>
            <span className="min-w-0 flex-1" dir="auto">
              {one.title && <span className="block truncate"><Marked text={one.kind === "agent" ? capitalize(one.title) : one.title} words={words} /></span>}
              {one.preview !== one.title && <span className="line-clamp-2 text-xs text-ink-2"><Marked text={one.preview} words={words} /></span>}
            </span>
            <span className="max-w-[35%] shrink-0 truncate text-xs text-ink-3">
              {one.kind !== "team" && `${one.team_name} · `}
              {shortTime(one.at)}
            </span>
          </Command.Item>
        ))}
      </Group>
    );
  });
}

/** A text with the words that were searched for marked. */
function Marked({ text, words }: { text: string; words: string[] }) {
  return splitAtWords(text, words).map((part, index) =>
    index % 2 === 1 ? (
      <mark key={index} className="rounded-[2px] bg-wait-bg font-medium text-ink">
        {part}
      </mark>
    ) : (
      part
    ),
  );
}

/** Return the parts of a text: those at odd places are searched words. */
export function splitAtWords(text: string, words: string[]): string[] {
  if (words.length === 0) return [text];
  const escaped = [...words].sort((one, other) => other.length - one.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "gi"));
}

const Group = ({ name, forceMount, children }: { name: string; forceMount?: boolean; children: ReactNode }) => (
  <Command.Group heading={name} forceMount={forceMount} className="[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1.5 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-semibold [&_[cmdk-group-heading]]:text-ink-3">
    {children}
  </Command.Group>
);

function PaletteItem({ value, keywords, onSelect, icon, detail, children }: { value: string; keywords?: string[]; onSelect: () => void; icon: ReactNode; detail?: string; children: ReactNode }) {
  return (
    <Command.Item
      value={value}
      keywords={keywords}
      onSelect={onSelect}
      className="flex h-9 cursor-pointer items-center gap-3 rounded-sm px-2.5 text-sm data-[selected=true]:bg-hover pointer-coarse:h-11 [&_svg]:size-4 [&_svg]:text-ink-3"
    >
      <span className="flex w-4 justify-center">{icon}</span>
      <span dir="auto" className="min-w-0 flex-1 truncate">{children}</span>
      {detail && <span dir="auto" className="max-w-[45%] truncate text-xs text-ink-3">{detail}</span>}
    </Command.Item>
  );
}
