/** TeamSettingsPage: all settings of a team on one page, in sections with anchors. */
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { errorMessage } from "@/api/client";
import { cx } from "@/lib/cx";
import { Budget } from "@/views/settings/Budget";
import { EndOfTeam } from "@/views/settings/EndOfTeam";
import { General, Goal, Soul } from "@/views/settings/General";
import { ModelChain } from "@/views/settings/ModelChain";
import { Permissions } from "@/views/settings/Permissions";
import type { Part } from "@/views/settings/Section";
import { settingsQuery, type TeamSettings } from "@/views/settings/settingsQuery";
import { Skills } from "@/views/settings/Skills";
import { Specialists } from "@/views/settings/Specialists";
import { TeamNotifications } from "@/views/settings/TeamNotifications";
import { ScreenHeader } from "@/parts/ScreenHeader";
import { ErrorPanel, Loading } from "@/ui";
import type { ScreenProps } from "@/lib/screens";

const PARTS: readonly Part[] = [
  { id: "general", title: "General" },
  { id: "goal", title: "Goal" },
  { id: "soul", title: "Character" },
  { id: "model", title: "Model" },
  { id: "budget", title: "Budget" },
  { id: "permissions", title: "Permissions" },
  { id: "specialists", title: "Specialists" },
  { id: "skills", title: "Skills" },
  { id: "notifications", title: "Notifications" },
  { id: "export", title: "Export, archive, delete" },
];

export default function TeamSettingsPage({ team }: ScreenProps) {
  const settings = useQuery(settingsQuery(team.id));
  return (
    <>
      <ScreenHeader team={team} title="Settings" />
      {settings.isPending ? (
        <Loading label="Loading the settings" />
      ) : settings.data ? (
        <Page key={team.id} settings={settings.data} />
      ) : (
        <ErrorPanel title="The settings could not be loaded" detail={errorMessage(settings.error)} onRetry={() => void settings.refetch()} />
      )}
    </>
  );
}

function Page({ settings }: { settings: TeamSettings }) {
  const page = useRef<HTMLDivElement>(null);
  const show = (id: string) => {
    const heading = page.current?.querySelector<HTMLElement>(`#${id} > h2`);
    heading?.parentElement?.scrollIntoView({ block: "start" });
    heading?.focus({ preventScroll: true });
  };
  const { current, choose, release, follow } = useCurrentSection(page);
  useEffect(() => {
    const id = location.hash.slice(1);
    if (!PARTS.some((part) => part.id === id)) return;
    show(id);
    choose(id);
  }, [choose]);
  return (
    <div ref={page} onScroll={follow} onWheel={release} onPointerDown={release} onKeyDown={release} className="scroll flex min-h-0 flex-1 justify-center gap-10 px-6 max-md:flex-col max-md:justify-start max-md:gap-0 max-md:px-4" tabIndex={-1}>
      <nav aria-label="Sections" className="sticky top-0 h-fit w-44 shrink-0 py-6 max-md:static max-md:w-full max-md:border-b max-md:border-line max-md:py-2">
        <ul className="flex flex-col gap-0.5 max-md:flex-row max-md:flex-wrap">
          {PARTS.map(({ id, title }) => (
            <li key={id}>
              <a
                href={`#${id}`}
                dir="auto"
                aria-current={id === current ? "location" : undefined}
                className={cx("flex h-8 items-center rounded-sm px-2.5 text-sm whitespace-nowrap hover:text-ink pointer-coarse:h-11", id === current ? "bg-press font-medium text-ink" : "text-ink-2 hover:bg-hover")}
                onClick={(event) => {
                  event.preventDefault();
                  history.replaceState(history.state, "", `#${id}`);
                  show(id);
                  choose(id);
                }}
              >
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div className="flex w-full max-w-[680px] min-w-0 flex-col gap-8 py-6 max-md:pt-4">
        <General settings={settings} />
        <Goal settings={settings} />
        <Soul settings={settings} />
        <ModelChain settings={settings} />
        <Budget settings={settings} />
        <Permissions settings={settings} />
        <Specialists team={settings.team} />
        <Skills team={settings.team} />
        <TeamNotifications settings={settings} />
        <EndOfTeam team={settings.team} />
      </div>
    </div>
  );
}

/** A section counts as the current one from this distance below the upper edge on. */
const UPPER_PX = 120;

/** Follow which section the person reads. One that they chose stays the current one until they scroll: the last sections cannot reach the upper edge. */
function useCurrentSection(page: RefObject<HTMLDivElement | null>) {
  const [current, setCurrent] = useState(PARTS[0]!.id);
  const chosen = useRef<string | null>(null);
  const choose = useCallback((id: string) => {
    chosen.current = id;
    setCurrent(id);
  }, []);
  const release = () => void (chosen.current = null);
  const follow = () => {
    const scroller = page.current;
    if (!scroller || chosen.current !== null) return;
    const edge = scroller.getBoundingClientRect().top + UPPER_PX;
    const isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
    const passed = PARTS.filter(({ id }) => (scroller.querySelector(`#${id}`)?.getBoundingClientRect().top ?? Infinity) <= edge);
    setCurrent((isAtEnd ? PARTS.at(-1) : (passed.at(-1) ?? PARTS[0]))!.id);
  };
  return { current, choose, release, follow };
}
