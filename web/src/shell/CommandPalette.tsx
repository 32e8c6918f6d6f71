/** CommandPalette: jump to any agent, screen or open question, run a command, or search all that the teams have said, done and learned. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Activity, Archive, Copy, Inbox, Keyboard, KeyRound, Moon, OctagonX, Play, Plus, Settings, Sun } from "lucide-react";
import { Dialog } from "radix-ui";
import { type FocusEvent, type KeyboardEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { errorMessage, type Found, type TeamOverview } from "@/api/client";
import { inboxQuery, isSearchable, overviewQuery, searchQuery } from "@/api/queries";
import { isComposing } from "@/lib/composing";
import { cx } from "@/lib/cx";
import { rememberWords } from "@/reading/foundWords";
import { capitalize, shortTime } from "@/lib/format";
import { resumeAllWork } from "@/views/operations/workStop";
import { FOUND_GROUPS, foundHref, foundIds, previewText, shownFound } from "@/shell/found";
import { emergencyRows, highlighted, matchingGroups, type PaletteEntry, type PaletteGroup, splitAtWords, wordsOf } from "@/shell/paletteRows";
import { shownStatus, useIsStopped } from "@/parts/serverQueries";
import { PALETTE_FIELD, useShell } from "@/parts/shellState";
import { unansweredItems } from "@/parts/unanswered";
import { useSettledText } from "@/parts/useSettledText";
import { StatusDot, type AgentStatus } from "@/ui";
import { SCREENS } from "@/views";

interface Entry extends PaletteEntry {
  icon: ReactNode;
  detail?: string;
  run: () => void;
  /** What the server has found: it is shown with the words around the searched ones. */
  found?: Found;
}

export default function CommandPalette() {
  const [typed, setTyped] = useState(() => useShell.getState().paletteText);
  const [chosen, setChosen] = useState<string | null>(null);
  useEffect(() => useShell.getState().update({ paletteText: "" }), []);
  const local = matchingGroups(useLocalGroups(typed), typed);
  const search = useFoundGroups(typed);
  const groups = [...local, ...search.groups];
  const entries = groups.flatMap((group) => group.entries);
  const active = highlighted(entries, chosen);
  const returnTo = useRef<Element | null>(null);
  const listId = useId();
  const optionId = (entry: Entry) => `${listId}-${entries.indexOf(entry)}`;
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event.nativeEvent) || !active) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setChosen(entries[Math.min(Math.max(entries.indexOf(active) + step, 0), entries.length - 1)]!.id);
    else if (event.key === "Enter") active.run();
    else return;
    event.preventDefault();
  };
  return (
    <Dialog.Root open onOpenChange={(isOpen) => useShell.getState().setOpen("palette", isOpen)}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          onEscapeKeyDown={(event) => isComposing(event) && event.preventDefault()}
          // Radix returns the focus to the dialog's own trigger alone, and the palette has none.
          onOpenAutoFocus={() => void (returnTo.current = document.activeElement)}
          onCloseAutoFocus={() => returnTo.current instanceof HTMLElement && returnTo.current.isConnected && returnTo.current.focus()}
          className="fixed top-[12vh] left-1/2 z-50 w-[min(600px,calc(100vw-24px))] -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-surface shadow-high"
        >
          <Dialog.Title className="sr-only">Jump to</Dialog.Title>
          <input
            id={PALETTE_FIELD}
            type="text"
            role="combobox"
            aria-label="Jump to"
            aria-expanded
            aria-autocomplete="list"
            aria-controls={listId}
            aria-activedescendant={active && optionId(active)}
            autoComplete="off"
            autoCorrect="off"
            spellCheck={false}
            dir="auto"
            value={typed}
            onFocus={caretToEnd}
            onKeyDown={onKeyDown}
            onChange={(event) => {
              setTyped(event.target.value);
              setChosen(null);
            }}
            placeholder="Jump to a member, a board, an answer, or search…"
            className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none focus:border-ink"
          />
          <List id={listId} groups={groups} active={active} optionId={optionId} onChoose={setChosen} words={wordsOf(typed)} />
          {(entries.length === 0 || search.error) && (
            <p role="status" className={cx("text-center text-sm text-ink-3", entries.length === 0 ? "p-6 pt-2" : "border-t border-line px-4 py-2.5")}>
              {search.error ? `The search failed: ${search.error}` : search.isSearching ? "Searching…" : "Nothing matches."}
            </p>
          )}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Put the caret behind the text that was typed before the palette was there. The dialog selects it, and the next key would replace it. */
function caretToEnd(event: FocusEvent<HTMLInputElement>): void {
  const input = event.currentTarget;
  queueMicrotask(() => input.setSelectionRange(input.value.length, input.value.length));
}

const close = () => useShell.getState().setOpen("palette", false);

/** Return a function that closes the palette and opens a page, where the searched words are marked. */
function useGo(): (to: string, words?: string[]) => void {
  const navigate = useNavigate();
  return (to, words = []) => {
    close();
    rememberWords(to, words);
    const { repeatedJumps, update } = useShell.getState();
    if (to === location.pathname + location.search) update({ repeatedJumps: repeatedJumps + 1 });
    else void navigate({ to: to as "/" });
  };
}

/** Return what the page itself knows: open questions, teams with their screens, and commands. */
function useLocalGroups(typed: string): PaletteGroup<Entry>[] {
  const go = useGo();
  const { team: current } = useParams({ strict: false });
  const teams = useQuery(overviewQuery).data ?? [];
  const isStopped = useIsStopped();
  const unanswered = unansweredItems(useQuery(inboxQuery).data?.items);
  const questions = unanswered.map(({ message }): Entry => {
    const label = message.title || message.text.slice(0, 80);
    return { id: message.id, label, icon: <StatusDot status="waiting_for_you" />, detail: capitalize(message.sender_name), run: () => go(`/inbox/${message.id}`) };
  });
  return [{ name: "Needs you", entries: questions }, ...shownTeams(teams, current, typed).map((team) => teamGroup(team, isStopped, go)), { name: "Actions", entries: useActions(go) }];
}

function useActions(go: (to: string) => void): Entry[] {
  const { setOpen, update } = useShell();
  const isStopped = useIsStopped();
  const { team } = useParams({ strict: false });
  const isDark = document.documentElement.dataset.theme === "dark";
  const open = (dialog: "newTeam" | "shortcutsDialog" | "stopDialog") => () => {
    close();
    setOpen(dialog, true);
  };
  const emergency = {
    stop: { icon: <OctagonX />, run: open("stopDialog") },
    resume: { icon: <Play />, run: () => (close(), void resumeAllWork()) },
    look: { icon: <OctagonX />, run: () => go("/operations") },
  };
  return [
    { id: "inbox", label: "Inbox", icon: <Inbox />, run: () => go("/inbox") },
    { id: "new team", label: "New team", icon: <Plus />, run: open("newTeam") },
    ...(team ? [{ id: "duplicate", label: "Duplicate this team", keywords: ["copy team"], icon: <Copy />, run: () => (close(), update({ newTeam: true, copies: team })) }] : []),
    { id: "theme", label: isDark ? "Light theme" : "Dark theme", icon: isDark ? <Sun /> : <Moon />, run: () => (update({ theme: isDark ? "light" : "dark" }), close()) },
    { id: "shortcuts", label: "Keyboard shortcuts", icon: <Keyboard />, run: open("shortcutsDialog") },
    { id: "models", label: "Set up a model", keywords: ["Models", "API key"], icon: <KeyRound />, run: () => go("/models?setup=true") },
    { id: "archive", label: "Archived teams", keywords: ["restore"], icon: <Archive />, run: () => go("/archive") },
    ...emergencyRows(isStopped).map((row): Entry => ({ ...row, ...emergency[row.does] })),
    { id: "operations", label: "Operations", keywords: ["health, tokens, audit"], icon: <Activity />, run: () => go("/operations") },
    { id: "settings", label: "Settings", icon: <Settings />, run: () => go("/settings") },
  ];
}

/** Return the teams whose screens are offered: the one on the screen, then those whose name holds a typed word. */
function shownTeams(teams: TeamOverview[], current: string | undefined, typed: string): TeamOverview[] {
  const words = wordsOf(typed);
  const isNamed = (team: TeamOverview) => words.some((word) => team.name.toLowerCase().includes(word));
  const others = teams.filter((team) => team.id !== current && isNamed(team)).slice(0, 5);
  return [...teams.filter((team) => team.id === current), ...others];
}

function teamGroup(team: TeamOverview, isStopped: boolean, go: (to: string) => void): PaletteGroup<Entry> {
  const members = team.members.map(
    (agent): Entry => ({ id: agent.id, label: capitalize(agent.name), keywords: [team.name, agent.role], icon: <StatusDot status={shownStatus(agent.status as AgentStatus, isStopped)} />, detail: agent.role, run: () => go(`/t/${team.id}/a/${agent.id}`) }),
  );
  const screens = SCREENS.filter((screen) => screen.isListed).map(
    (screen): Entry => ({ id: `${team.id} ${screen.path}`, label: screen.label, keywords: [team.name], icon: <screen.icon />, detail: team.name, run: () => go(`/t/${team.id}/${screen.path}`) }),
  );
  return { name: team.name, entries: [...members, ...screens] };
}

/** Return what the server has found, by kind. The server has compared the words. */
function useFoundGroups(typed: string): { groups: PaletteGroup<Entry>[]; isSearching: boolean; error: string } {
  const go = useGo();
  const { team: current } = useParams({ strict: false });
  const text = typed.trim();
  const settled = useSettledText(text);
  const search = useQuery(searchQuery(settled));
  if (!isSearchable(text)) return { groups: [], isSearching: false, error: "" };
  const isOutdated = settled !== text || search.isPlaceholderData;
  const hits = shownFound(search.data ?? [], wordsOf(text), isOutdated).filter((one) => one.kind !== "agent" || one.team_id !== current);
  const ids = foundIds(hits);
  const groups = FOUND_GROUPS.map(({ name, kinds, icon: Icon }) => ({
    name,
    entries: hits.flatMap((one, index): Entry[] => (kinds.includes(one.kind) ? [{ id: ids[index]!, label: one.title, icon: <Icon />, found: one, run: () => go(foundHref(one), wordsOf(text)) }] : [])),
  }));
  return { groups: groups.filter((group) => group.entries.length > 0), isSearching: isOutdated || search.isFetching, error: search.isError && !isOutdated ? errorMessage(search.error) : "" };
}

interface ListProps {
  id: string;
  groups: PaletteGroup<Entry>[];
  active: Entry | undefined;
  optionId: (entry: Entry) => string;
  onChoose: (id: string) => void;
  words: string[];
}

function List({ id, groups, active, optionId, onChoose, words }: ListProps) {
  const list = useRef<HTMLDivElement>(null);
  const isFirst = active !== undefined && active === groups[0]?.entries[0];
  useLayoutEffect(() => {
    if (isFirst) list.current?.scrollTo({ top: 0 });
    else list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active?.id, isFirst]);
  return (
    <div ref={list} id={id} role="listbox" aria-label="Suggestions" className={cx("scroll max-h-[56vh]", groups.length > 0 && "p-2")}>
      {groups.map((group, index) => (
        <div key={index} role="group" aria-labelledby={`${id}-group-${index}`}>
          <div id={`${id}-group-${index}`} dir="auto" className="px-2 py-1.5 text-xs font-semibold text-ink-3">
            {group.name}
          </div>
          {group.entries.map((entry) => (
            <div
              key={entry.id}
              id={optionId(entry)}
              role="option"
              aria-selected={entry === active}
              onPointerMove={() => entry !== active && onChoose(entry.id)}
              onClick={entry.run}
              className={cx("flex cursor-pointer gap-3 rounded-sm px-2.5 text-sm pointer-coarse:min-h-11 [&_svg]:size-4 [&_svg]:text-ink-3", entry === active && "bg-press", entry.found ? "items-start py-1.5" : "min-h-9 items-center")}
            >
              <span className={cx("flex w-4 shrink-0 justify-center", entry.found && "mt-0.5")}>{entry.icon}</span>
              {entry.found ? <FoundText found={entry.found} words={words} /> : <EntryText entry={entry} />}
            </div>
          ))}
        </div>
      ))}
    </div>
  );
}

const EntryText = ({ entry }: { entry: Entry }) => (
  <>
    <span dir="auto" className="min-w-0 flex-1 truncate">{entry.label}</span>
    {entry.detail && <span dir="auto" className="max-w-[45%] truncate text-xs text-ink-3">{entry.detail}</span>}
  </>
);

const FoundText = ({ found, words }: { found: Found; words: string[] }) => (
  <>
    <span className="min-w-0 flex-1" dir="auto">
      {found.title && <span className="line-clamp-2 break-words"><Marked text={found.kind === "agent" ? capitalize(found.title) : found.title} words={words} /></span>}
      {found.preview !== found.title && <span className="line-clamp-2 text-xs break-words text-ink-2"><Marked text={previewText(found)} words={words} /></span>}
    </span>
    <span className="max-w-[35%] shrink-0 truncate text-xs text-ink-3">
      {found.kind !== "team" && (
        <>
          <bdi>{found.team_name}</bdi> ·{" "}
        </>
      )}
      {shortTime(found.at)}
    </span>
  </>
);

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
