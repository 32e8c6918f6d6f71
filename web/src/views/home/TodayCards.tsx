/** TodayCards: what needs the person, what runs, what ended today and what was spent today, in all teams. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useId } from "react";
import type { InboxRow, TeamOverview } from "@/api/client";
import { dayCostQuery, openQuery } from "@/api/queries";
import { clockTime, fullTime, money, plural } from "@/lib/format";
import { screenHref } from "@/lib/screens";
import { authorOf, labelOf, titleOf } from "@/parts/entries";
import { RelativeTime, useNow } from "@/parts/RelativeTime";
import { TEAM_STATES } from "@/parts/teamState";
import { useOpenItems } from "@/parts/unanswered";
import { Badge, Chip, Meter } from "@/ui";
import { atWork, endedToday, whoWorks } from "@/views/home/today";

/** So many rows a card has; the rest is counted. */
const MOST_ROWS = 5;
const MINUTE_MS = 60_000;

export function TodayCards({ teams }: { teams: TeamOverview[] }) {
  const now = useNow(MINUTE_MS);
  const running = atWork(teams);
  const ended = endedToday(teams, now);
  const asked = useOpenItems();
  const open = useQuery(openQuery()).data?.open ?? 0;
  return (
    <div className="grid grid-cols-2 items-start gap-4 max-lg:grid-cols-1 [&>div]:flex [&>div]:min-w-0 [&>div]:flex-col [&>div]:gap-4">
      <div>
        <Card title="Needs you" count={open} isUrgent none="Nothing waits for you." rest={<Link to="/inbox" className={linkStyle}>{moreText(open)} in the inbox</Link>}>
          {asked.slice(0, MOST_ROWS).map((item) => (
            <QuestionRow key={item.message.id} item={item} team={teams.find((one) => one.id === item.message.team_id)?.name} now={now} />
          ))}
        </Card>
        <Card title="Running" count={running.length} none="No team is at work." rest={<>{moreText(running.length)} in the list of teams</>}>
          {running.slice(0, MOST_ROWS).map((team) => (
            <TeamRow key={team.id} team={team} text={whoWorks(team)} />
          ))}
        </Card>
      </div>
      <div>
        <Card title="Ended today" count={ended.length} none="No team has ended its goal today." rest={<>{moreText(ended.length)} in the list of teams</>}>
          {ended.slice(0, MOST_ROWS).map((team) => (
            <TeamRow
              key={team.id}
              team={team}
              text={
                <time dateTime={team.ended_at!} title={fullTime(team.ended_at!)}>
                  {clockTime(team.ended_at!)}
                </time>
              }
            />
          ))}
        </Card>
        <Spent />
      </div>
    </div>
  );
}

const linkStyle = "inline-flex min-h-6 items-center underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11";
const moreText = (count: number): string => `${count - MOST_ROWS} more`;

function Card({ title, count = 0, isUrgent, none, rest, children }: { title: string; count?: number; isUrgent?: boolean; none?: string; /** Where the rows are that the card has no place for. */ rest?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="rounded-lg border border-line bg-surface">
      <div className="flex items-center gap-2 px-4 pt-3 pb-1">
        <h2 id={id} dir="auto" className="text-left text-sm font-semibold">
          {title}
        </h2>
        {isUrgent && <Badge n={count} isUrgent label={plural(count, "open question")} />}
      </div>
      {count === 0 && none ? <p className="px-4 pb-4 text-sm text-ink-3">{none}</p> : <ul className="pb-2">{children}</ul>}
      {count > MOST_ROWS && <p className="border-t border-line px-4 py-2 text-xs text-ink-2">{rest}</p>}
    </section>
  );
}

const rowStyle = "flex min-h-11 items-center gap-3 px-4 py-1.5 hover:bg-hover";

function TeamRow({ team, text }: { team: TeamOverview; text: ReactNode }) {
  const { label, tone } = TEAM_STATES[team.state];
  return (
    <li className={rowStyle}>
      <Link to={(team.coordinator_id ? `/t/${team.id}/a/${team.coordinator_id}` : `/t/${team.id}`) as "/"} className="min-w-0 flex-1 rounded-sm">
        <span dir="auto" className="block truncate text-sm font-medium">
          {team.name}
        </span>
        <span dir="auto" className="block truncate text-xs text-ink-2">
          {text}
        </span>
      </Link>
      {team.usd > 0 && (
        <Link to={screenHref(team.id, "cost") as "/"} aria-label={`${team.name} has cost ${money(team.usd)}`} className={`tabular text-xs text-ink-2 ${linkStyle}`}>
          {money(team.usd)}
        </Link>
      )}
      <Chip tone={tone}>{label}</Chip>
    </li>
  );
}

function QuestionRow({ item, team, now }: { item: InboxRow; team: string | undefined; now: number }) {
  return (
    <li>
      <Link to="/inbox/$item" params={{ item: item.message.id }} className={rowStyle}>
        <span className="min-w-0 flex-1">
          <span dir="auto" className="line-clamp-2 text-sm font-medium break-words">
            {titleOf(item)}
          </span>
          <span dir="auto" className="block truncate text-xs text-ink-2">
            <bdi>{authorOf(item)}</bdi>
            {team && (
              <>
                {" · "}
                <bdi>{team}</bdi>
              </>
            )}
            {" · "}
            <RelativeTime at={item.message.created_at} now={now} />
          </span>
        </span>
        <Chip tone="wait">{labelOf(item).text}</Chip>
      </Link>
    </li>
  );
}

/** What all teams have spent today, against the daily limit. */
function Spent() {
  const { data } = useQuery(dayCostQuery);
  const limit = data?.limit_usd ?? null;
  return (
    <Card title="Spent today">
      <li className="px-4 pb-2">
        <p className="tabular text-xl font-semibold">
          {data ? money(data.usd) : "…"}
          {limit !== null && <span className="text-sm font-normal text-ink-2"> of {money(limit)}</span>}
        </p>
        {data && limit !== null && (
          <div className="mt-1.5">
            <Meter value={data.usd} max={limit} tone={data.is_reached ? "wait" : "plain"} label="Today's spend against the daily limit" />
          </div>
        )}
        <p className="mt-1.5 text-xs text-ink-2">{data?.is_reached ? "The daily limit is reached: paid work waits for you, or for the next day (UTC)." : "All teams, since midnight UTC. What a team has cost stands beside it."}</p>
      </li>
    </Card>
  );
}
