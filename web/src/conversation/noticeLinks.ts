/** NoticeLinks: where a notice leads. A notice about a task names the task itself; the others get a link to what changed. */
import { live } from "@/live";
import type { Event } from "@/live/log";
import { screenHref } from "@/views";

export interface NoticeLink {
  label: string;
  href: string;
}

/** Return the link of the notice that an event made, or null. */
export function linkOfEvent(team: string, event: Event): NoticeLink | null {
  const to = (label: string, href: string | null): NoticeLink | null => (href === null ? null : { label, href });
  switch (event.type) {
    case "agent.hired":
    case "agent.returned":
    case "agent.promoted":
      return { label: "Open", href: `/t/${team}/a/${event.data.agent_id}` };
    case "team.changed":
      return to("Settings", screenHref(team, "settings"));
    case "trigger.fired":
      return to("Triggers", screenHref(team, "triggers"));
    case "memory.written":
      return to("Memory", event.data.path ? screenHref(team, "memory", event.data.path) : screenHref(team, "memory", "", "?tab=memories"));
    case "stage.started":
    case "stage.ended":
    case "stage.reconvened":
      return to("Board", screenHref(team, "board"));
    default:
      return null;
  }
}

/** Return the link of the notice with this event number. The events of a loaded log have no gaps. */
export function noticeLink(team: string, seq: number): NoticeLink | null {
  const log = live.store.getState().logs[team];
  const event = log?.events[seq - log.first];
  return event?.seq === seq ? linkOfEvent(team, event) : null;
}
