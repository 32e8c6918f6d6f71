/** TeamForm: what a person has written and chosen for a new team. It is kept until the team is created, also while they set up a model. */
import { useState } from "react";
import type { components } from "@/api/types";
import { overviewQuery, queryClient } from "@/api/queries";
import { linesOf } from "@/lib/format";
import { useStoredDraft } from "@/lib/storedDraft";
import type { Trust } from "@/lib/trust";
import type { Team } from "@/api/client";
import { DEMO_GOAL, demoName } from "@/views/home/goalText";

export type Body = components["schemas"]["NewTeam"];
type Mode = Team["mode"];
type Review = Team["review"];
type Effort = NonNullable<Team["effort"]>;

interface Field<T> {
  value: T;
  set: (value: T) => void;
}

export interface TeamForm extends ReturnType<typeof useTeamForm> {}

/** Seconds between the cycles of a team that runs until it is stopped, if the person does not choose. */
const INTERVAL = 3600;

/** A text of the form. With a `start` of its own, nothing is kept. */
function useText(key: string, start: string | null): Field<string> {
  const stored = useStoredDraft(key);
  const own = useState(start ?? "");
  const [value, set] = start === null ? stored : own;
  return { value, set };
}

/** A choice of the form, kept as its texts are. The ordinary choice is an empty text. */
function useChoice<T extends string | number>(key: string, start: string | null, ordinary: T): Field<T> {
  const { value, set } = useText(key, start);
  const choice = (typeof ordinary === "number" ? Number(value) : value) as T;
  return { value: value === "" ? ordinary : choice, set: (one) => set(one === ordinary ? "" : String(one)) };
}

/** Return the form with what an earlier page kept; or that of the demo, which does not replace what the person has begun to write. */
export function useTeamForm(startsDemo: boolean) {
  const start = startsDemo ? "" : null;
  const goal = useText("goal", startsDemo ? DEMO_GOAL : null);
  const name = useText("team.name", startsDemo ? demoName((queryClient.getQueryData(overviewQuery.queryKey) ?? []).map((team) => team.name)) : null);
  const mode = useChoice<Mode>("team.mode", start, "finite");
  const interval = useChoice<number>("team.interval", start, INTERVAL);
  const review = useChoice<Review>("team.review", start, "auto");
  const trust = useChoice<Trust>("team.trust", start, "standard");
  const [typed, setTyped] = useState("");
  const model = useText("team.model", startsDemo ? "demo" : null);
  const effort = useChoice<Effort | "">("team.effort", start, "");
  const usd = useText("team.usd", start);
  const workers = useText("team.workers", start);
  const acceptance = useText("team.acceptance", start);
  const folders = useText("team.folders", start);
  // The key of the last request and what it asked for, until its response comes. A request that is sent twice with the same key creates one team, also if the response to the first was lost, or the page reloaded before it came.
  const sent = useText("team.sent", start);
  const texts = [name, model, effort, usd, workers, acceptance, folders] as Field<string>[];
  return {
    goal, name, mode, interval, review, trust, model, effort, usd, workers, acceptance, folders, sent,
    typedName: { value: typed, set: setTyped },
    /** What the person types to create an open team. */
    openName: name.value.trim() || "open",
    /** Whether something is chosen that stands in the options alone. */
    hasOptions: review.value !== "auto" || trust.value !== "standard" || texts.some(({ value }) => value !== ""),
    request: (): Omit<Body, "goal" | "attachments"> => ({
      name: name.value.trim(),
      mode: mode.value,
      model: model.value.trim(),
      effort: effort.value || null,
      ...(usd.value ? { budget: { usd: Number(usd.value), turns: 1000 } } : {}),
      ...(workers.value ? { workers: Number(workers.value) } : {}),
      acceptance: mode.value === "finite" ? linesOf(acceptance.value) : [],
      soul: "",
      learns: true,
      start: true,
      interval: interval.value,
      review: review.value,
      trust: trust.value,
      folders: linesOf(folders.value),
    }),
    forget: () => {
      for (const text of [goal, sent, ...texts]) text.set("");
      mode.set("finite");
      interval.set(INTERVAL);
      review.set("auto");
      trust.set("standard");
    },
  };
}
