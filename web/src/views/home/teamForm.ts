/** TeamForm: what a person has written and chosen for a new team. It is kept until the team is created, also while they set up a model. */
import { useState } from "react";
import type { components } from "@/api/types";
import { api, unwrap } from "@/api/client";
import { overviewQuery, queryClient } from "@/api/queries";
import { linesOf } from "@/lib/format";
import { useStoredDraft } from "@/lib/storedDraft";
import type { Trust } from "@/lib/trust";
import type { Team } from "@/api/client";
import { DEMO_GOAL, demoName } from "@/views/home/goalText";
import { NEW_TEAM } from "@/views/composer/GoalFiles";

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

/** What a form of its own shows at first, as the texts of its fields. Such a form does not replace what the person has begun to write. */
export interface Start extends Partial<Record<"goal" | "name" | "mode" | "interval" | "review" | "trust" | "model" | "effort" | "usd" | "workers" | "acceptance" | "folders", string>> {
  of: "demo" | "copy";
  /** The draft that its files belong to; the demo takes none. */
  files: string | null;
  /** What a copy has besides, which the form does not show. */
  besides?: Pick<Body, "permissions" | "soul" | "learns">;
}

/** Return the form of the demo. */
export const demoStart = (): Start => ({ of: "demo", files: null, goal: DEMO_GOAL, name: demoName((queryClient.getQueryData(overviewQuery.queryKey) ?? []).map((team) => team.name)), model: "demo" });

/** Return the form of a team that is like this one. */
export async function copyOf(id: string): Promise<Start> {
  const { team, budget, limits, ...settings } = await unwrap(api.GET("/api/teams/{team}/settings", { params: { path: { team: id } } }));
  const goal = budget && (await unwrap(api.GET("/api/nodes/{node}", { params: { path: { node: budget.node_id } } })));
  return {
    of: "copy",
    files: `copy.${id}`,
    goal: team.goal,
    name: `${team.name} copy`,
    mode: team.mode,
    interval: String(team.interval),
    review: team.review,
    trust: team.trust,
    model: settings.model,
    effort: team.effort ?? "",
    usd: String(budget?.limits.find((one) => one.name === "usd")?.limit ?? ""),
    workers: String(limits.agents),
    acceptance: goal?.acceptance.join("\n") ?? "",
    folders: team.folders.map((folder) => (folder.access === "rw" ? `${folder.path}:rw` : folder.path)).join("\n"),
    besides: { permissions: settings.permissions, soul: settings.is_default_soul ? "" : settings.soul, learns: team.learns },
  };
}

/** Return the form with what an earlier page kept, or one that begins with what `begun` has. */
export function useTeamForm(begun: Start | null) {
  const startOf = (field: Exclude<keyof Start, "of" | "files" | "besides">) => begun && (begun[field] ?? "");
  const goal = useText("goal", startOf("goal"));
  const name = useText("team.name", startOf("name"));
  const mode = useChoice<Mode>("team.mode", startOf("mode"), "finite");
  const interval = useChoice<number>("team.interval", startOf("interval"), INTERVAL);
  const review = useChoice<Review>("team.review", startOf("review"), "auto");
  const trust = useChoice<Trust>("team.trust", startOf("trust"), "standard");
  const [typed, setTyped] = useState("");
  const model = useText("team.model", startOf("model"));
  const effort = useChoice<Effort | "">("team.effort", startOf("effort"), "");
  const usd = useText("team.usd", startOf("usd"));
  const workers = useText("team.workers", startOf("workers"));
  const acceptance = useText("team.acceptance", startOf("acceptance"));
  const folders = useText("team.folders", startOf("folders"));
  // The key of the last request and what it asked for, until its response comes. A request that is sent twice with the same key creates one team, also if the response to the first was lost, or the page reloaded before it came.
  const sent = useText("team.sent", begun && "");
  const texts = [name, model, effort, usd, workers, acceptance, folders] as Field<string>[];
  return {
    goal, name, mode, interval, review, trust, model, effort, usd, workers, acceptance, folders, sent,
    files: begun ? begun.files : NEW_TEAM,
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
      ...begun?.besides,
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
