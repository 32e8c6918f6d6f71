/** ModelChain: the coordinator's model and those that answer if it cannot, with a list to choose from. */
import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, Plus, X } from "lucide-react";
import { useId, useState } from "react";
import { isComposing } from "@/lib/composing";
import { Facts } from "@/views/models/Facts";
import { type Model, type Models, noticeOf } from "@/views/models/notice";
import { modelsQuery } from "@/views/models/modelsQuery";
import { NoticeText } from "@/views/models/NoticeText";
import { Section, SectionForm } from "@/views/settings/Section";
import { type TeamSettings, useSave } from "@/views/settings/settingsQuery";
import { useEdits } from "@/views/settings/useEdits";
import { Button, IconButton, Input } from "@/ui";

const split = (chain: string): string[] => chain.split(",").map((name) => name.trim()).filter(Boolean);

export function ModelChain({ settings }: { settings: TeamSettings }) {
  const save = useSave(settings.team.id, "Saved. The coordinator uses it from its next step on.");
  const models = useQuery(modelsQuery);
  const form = useEdits({ chain: split(settings.model) }, `model.${settings.team.id}`);
  const { chain } = form.values;
  const setChain = (chain: string[]) => form.set({ chain });
  const [isChoosing, setIsChoosing] = useState(false);
  const move = (at: number, by: number) => {
    const next = [...chain];
    [next[at], next[at + by]] = [next[at + by]!, next[at]!];
    setChain(next);
  };
  return (
    <Section id="model" title="Model" about="The coordinator's model. If it cannot answer, the next one in the list is asked. Members that it hires may use others.">
      <SectionForm save={save} isChanged={chain.length > 0 && form.isChanged} edits={form} onSave={() => save.mutate({ model: chain.join(", ") }, { onSuccess: form.forget })}>
        <ol aria-label="Models in order" className="divide-y divide-line rounded-md border border-line">
          {chain.map((name, at) => (
            <li key={name} className="flex items-start gap-2 px-3 py-2">
              <div className="min-w-0 flex-1 py-1">
                <span className="break-all">{name}</span> <span className="text-xs font-normal text-ink-3">{at === 0 ? "First choice" : `Fallback ${at}`}</span>
                <Known models={models.data} name={name} />
              </div>
              {chain.length > 1 && (
                <>
                  <IconButton label={`Move ${name} up`} disabled={at === 0} onClick={() => move(at, -1)}>
                    <ArrowUp className="size-4" />
                  </IconButton>
                  <IconButton label={`Move ${name} down`} disabled={at === chain.length - 1} onClick={() => move(at, 1)}>
                    <ArrowDown className="size-4" />
                  </IconButton>
                  <IconButton label={`Remove ${name}`} onClick={() => setChain(chain.filter((one) => one !== name))}>
                    <X className="size-4" />
                  </IconButton>
                </>
              )}
            </li>
          ))}
        </ol>
        {isChoosing ? (
          <ModelList
            models={models.data}
            isLoading={models.isPending}
            taken={chain}
            onUse={(name) => {
              setChain([name, ...chain.slice(1).filter((one) => one !== name)]);
              setIsChoosing(false);
            }}
            onAdd={(name) => {
              setChain([...chain, name]);
              setIsChoosing(false);
            }}
            onClose={() => setIsChoosing(false)}
          />
        ) : (
          <div>
            <Button onClick={() => setIsChoosing(true)}>
              <Plus className="size-4" aria-hidden /> Choose a model
            </Button>
          </div>
        )}
      </SectionForm>
    </Section>
  );
}

const modelOf = (models: Models | undefined, name: string): Model | undefined => {
  const plain = name.replace(/^text\//, "");
  return models?.providers.flatMap((provider) => provider.models).find((model) => model.name === plain);
};

function Known({ models, name }: { models: Models | undefined; name: string }) {
  const model = modelOf(models, name);
  const notice = noticeOf(models, name);
  return (
    <div className="font-normal">
      {model && <Facts model={model} />}
      {notice && <NoticeText notice={notice} className="mt-1" />}
    </div>
  );
}

interface ListProps {
  models: Models | undefined;
  isLoading: boolean;
  taken: readonly string[];
  onUse: (name: string) => void;
  onAdd: (name: string) => void;
  onClose: () => void;
}

/** The models that can be used now, with what each costs and can do. */
function ModelList({ models, isLoading, taken, onUse, onAdd, onClose }: ListProps) {
  const [words, setWords] = useState("");
  const id = useId();
  const usable = (models?.providers ?? []).filter((provider) => provider.state === "ready").flatMap((provider) => provider.models);
  const wanted = words.trim().toLowerCase();
  const found = usable.filter((model) => model.name.toLowerCase().includes(wanted));
  // A vendor may have models that agiraph does not know.
  const isUnknown = wanted.includes("/") && !usable.some((model) => model.name.toLowerCase() === wanted);
  return (
    <div role="group" aria-label="Choose a model" onKeyDown={(event) => event.key === "Escape" && !isComposing(event.nativeEvent) && onClose()} className="rounded-md border border-line-2 p-3">
      <div className="flex gap-2">
        <label className="sr-only" htmlFor={id}>
          Search for a model
        </label>
        <Input id={id} autoFocus value={words} onChange={(event) => setWords(event.target.value)} placeholder="Search, or write provider/model" className="font-normal" autoComplete="off" spellCheck={false} />
        <Button onClick={onClose}>Close</Button>
      </div>
      <ul aria-label="Models" className="scroll mt-2 max-h-80 divide-y divide-line" tabIndex={-1}>
        {isLoading && <li className="py-2 font-normal text-ink-3">Asking the servers what they have…</li>}
        {[...found.map((model) => model.name), ...(isUnknown ? [words.trim()] : [])].map((name) => (
          <li key={name} className="flex flex-wrap items-start gap-x-3 gap-y-1 py-2">
            <div className="min-w-0 flex-1 basis-56">
              <span className="break-all">{name}</span>
              <Known models={models} name={name} />
            </div>
            <span className="flex gap-1.5">
              <Button size="sm" disabled={taken[0] === name} onClick={() => onUse(name)} aria-label={`Use ${name} first`}>
                Use
              </Button>
              <Button size="sm" disabled={taken.includes(name)} onClick={() => onAdd(name)} aria-label={`Add ${name} as a fallback`}>
                Add as fallback
              </Button>
            </span>
          </li>
        ))}
        {!isLoading && found.length === 0 && !isUnknown && <li className="py-2 font-normal text-ink-2">{usable.length === 0 ? "No model is ready. Add a key on the Models page, or write provider/model." : "No model that is ready has this in its name."}</li>}
      </ul>
    </div>
  );
}
