/** Rules: the permission rules of a team, with a preview of the calls that each of them decides on. */
import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, Plus, X } from "lucide-react";
import { useId } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { Literal } from "@/reading/Literal";
import { capitalize, plural, shortTime } from "@/lib/format";
import { SectionForm } from "@/views/settings/Section";
import { useSave } from "@/views/settings/settingsQuery";
import { useEdits } from "@/views/settings/useEdits";
import { Button, IconButton, Input, Problem } from "@/ui";

type Rule = Schemas["RuleView"];
const ACTIONS: readonly (readonly [Rule["action"], string])[] = [
  ["ask", "Ask me"],
  ["allow", "Allow"],
  ["deny", "Refuse"],
];
const NEW_RULE: Rule = { tool: "bash", action: "ask", pattern: "*" };
const selectStyle = "h-9 rounded-sm border border-control bg-surface px-2 text-sm font-normal pointer-coarse:h-11";

export function Rules({ team, saved }: { team: string; saved: readonly Rule[] }) {
  const save = useSave(team, "The rules are saved.");
  const form = useEdits<{ permissions: readonly Rule[] }>({ permissions: saved }, `rules.${team}`);
  const rules = form.values.permissions;
  const setRules = (permissions: readonly Rule[]) => form.set({ permissions });
  const id = useId();
  const isValid = rules.every((rule) => rule.tool.trim() && rule.pattern);
  const preview = useQuery({
    queryKey: ["rules-preview", team, JSON.stringify(rules)],
    queryFn: () => unwrap(api.POST("/api/teams/{team}/permissions/preview", { params: { path: { team } }, body: { rules: isValid ? [...rules] : [] } })),
    placeholderData: (before) => before,
  });
  const change = (at: number, changes: Partial<Rule>) => setRules(rules.map((rule, place) => (place === at ? { ...rule, ...changes } : rule)));
  const move = (at: number, by: number) => {
    const next = [...rules];
    [next[at], next[at + by]] = [next[at + by]!, next[at]!];
    setRules(next);
  };
  return (
    <section aria-labelledby={`${id}title`}>
      <h3 id={`${id}title`} className="font-medium">
        Permission rules
      </h3>
      <p className="mb-3 max-w-[66ch] text-ink-2">
        The first rule whose tool and pattern match a call decides on it. The pattern is compared with the call's first argument, such as the command or the path; <code>*</code> stands for anything.
      </p>
      <SectionForm save={save} isChanged={isValid && form.isChanged} edits={form} onSave={() => save.mutate({ permissions: [...rules] }, { onSuccess: form.forget })} label="Save the rules">
        <datalist id={`${id}tools`}>
          {(preview.data?.tools ?? []).map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {rules.length === 0 && <p className="font-normal text-ink-2">There are no rules: only the team's trust and what you allowed decide.</p>}
        {rules.length > 0 && (
          <ol aria-label="Rules in order" className="flex flex-col gap-3">
            {rules.map((rule, at) => (
              <li key={at} className="rounded-md border border-line p-3">
                <div className="flex flex-wrap items-center gap-2">
                  <select aria-label={`What rule ${at + 1} does`} autoFocus={rule === NEW_RULE} className={selectStyle} value={rule.action} onChange={(event) => change(at, { action: event.target.value as Rule["action"] })}>
                    {ACTIONS.map(([action, label]) => (
                      <option key={action} value={action}>
                        {label}
                      </option>
                    ))}
                  </select>
                  <Input aria-label={`Tool of rule ${at + 1}`} list={`${id}tools`} value={rule.tool} onChange={(event) => change(at, { tool: event.target.value })} className="w-36 font-normal" spellCheck={false} autoComplete="off" maxLength={200} />
                  <Input aria-label={`Pattern of rule ${at + 1}`} value={rule.pattern} onChange={(event) => change(at, { pattern: event.target.value })} className="min-w-40 flex-1 font-mono font-normal" spellCheck={false} autoComplete="off" maxLength={2000} dir="ltr" />
                  <span className="flex">
                    <IconButton label={`Move rule ${at + 1} up`} disabled={at === 0} onClick={() => move(at, -1)}>
                      <ArrowUp className="size-4" />
                    </IconButton>
                    <IconButton label={`Move rule ${at + 1} down`} disabled={at === rules.length - 1} onClick={() => move(at, 1)}>
                      <ArrowDown className="size-4" />
                    </IconButton>
                    <IconButton label={`Remove rule ${at + 1}`} onClick={() => setRules(rules.filter((_, place) => place !== at))}>
                      <X className="size-4" />
                    </IconButton>
                  </span>
                </div>
                <Matches preview={isValid ? preview.data : undefined} at={at} />
              </li>
            ))}
          </ol>
        )}
        <Problem of={preview.error} className="text-sm font-normal" />
        <div>
          <Button onClick={() => setRules([...rules, NEW_RULE])}>
            <Plus className="size-4" aria-hidden /> Add a rule
          </Button>
        </div>
      </SectionForm>
    </section>
  );
}

/** Which of the team's newest calls a rule would have decided on. */
function Matches({ preview, at }: { preview: Schemas["RulesPreview"] | undefined; at: number }) {
  const matched = preview?.rules[at];
  if (!preview || !matched) return null;
  return (
    <div className="mt-2 text-xs font-normal text-ink-2" aria-live="polite">
      {preview.calls === 0 ? "The team has called no tool yet." : `Decides on ${matched.count} of the team's newest ${plural(preview.calls, "call")}.`}
      {matched.examples.length > 0 && (
        <ul className="mt-1 flex flex-col gap-0.5">
          {matched.examples.map((call, place) => (
            <li key={place} className="min-w-0 truncate" title={call.argument}>
              <span className="text-ink-3">
                {shortTime(call.at)} {capitalize(call.agent)}
              </span>{" "}
              {call.tool}{" "}
              <code dir="ltr" className="literal">
                <Literal text={call.argument} />
              </code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
