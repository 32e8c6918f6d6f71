/** Completion: the list above the text field that completes @names of the team, and #tasks and files. */
import { useQuery } from "@tanstack/react-query";
import { FileText, SquareCheck } from "lucide-react";
import { type ReactNode, useEffect, useImperativeHandle, useMemo, useState, type Ref } from "react";
import { type Agent, api, type Team, unwrap } from "@/api/client";
import { boardQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { capitalize } from "@/lib/format";
import { fileReference, isForAgents, nodeReference, type Reference, type Typed } from "@/views/composer/references";
import { Avatar } from "@/ui";
import { displayStatusOf, STATUS_STYLES } from "@/parts/taskStatus";

const MOST_TASKS = 6;
const MOST_FILES = 4;
const COMPLETION_ID = "completion";
export const optionId = (index: number): string => `${COMPLETION_ID}-${index}`;

interface Option {
  key: string;
  icon: ReactNode;
  name: string;
  detail: string;
  /** What is put into the text field. */
  token: string;
  reference: Reference | null;
}

/** What the text field does with its keys while the list is open. */
export interface CompletionKeys {
  /** Handle a key; return whether it was used. */
  press: (key: string) => boolean;
}

interface Props {
  team: Team;
  agents: Agent[];
  typed: Typed;
  onChoose: (token: string, reference: Reference | null) => void;
  onClose: () => void;
  onActive: (id: string | undefined) => void;
  keys: Ref<CompletionKeys>;
}

export default function Completion({ team, agents, typed, onChoose, onClose, onActive, keys }: Props) {
  const members = useMemo(() => memberOptions(team, agents, typed), [team, agents, typed]);
  const work = useWorkOptions(team, typed);
  const options = typed.sign === "@" ? members : work;
  const [active, setActive] = useState(0);
  useEffect(() => setActive(0), [typed.sign, typed.words]);
  const index = Math.min(active, options.length - 1);
  useEffect(() => {
    onActive(options.length > 0 ? optionId(index) : undefined);
    document.getElementById(optionId(index))?.scrollIntoView({ block: "nearest" });
    return () => onActive(undefined);
  }, [options.length, index, onActive]);
  const choose = (option: Option) => onChoose(option.token, option.reference);
  useImperativeHandle(keys, () => ({
    press: (key) => {
      if (key === "Escape") return onClose(), true;
      if (options.length === 0) return false;
      if (key === "ArrowDown") return setActive((index + 1) % options.length), true;
      if (key === "ArrowUp") return setActive((index - 1 + options.length) % options.length), true;
      if (key === "Enter" || key === "Tab") return choose(options[index]!), true;
      return false;
    },
  }));
  if (options.length === 0) return null;
  return (
    <ul id={COMPLETION_ID} role="listbox" aria-label={typed.sign === "@" ? "Members" : "Tasks and files"} className="scroll absolute inset-x-0 bottom-full z-20 mb-1 max-h-64 rounded-md border border-line bg-surface p-1 shadow-high">
      {options.map((option, at) => (
        <li
          key={option.key}
          id={optionId(at)}
          role="option"
          aria-selected={at === index}
          // The pointer must not take the focus from the text field.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => choose(option)}
          onPointerMove={() => at !== index && setActive(at)}
          className={cx("flex min-h-9 cursor-pointer items-center gap-2.5 rounded-sm px-2 py-1 text-sm pointer-coarse:min-h-11", at === index && "bg-hover")}
        >
          <span className="flex w-6 shrink-0 justify-center text-ink-3 [&_svg]:size-4">{option.icon}</span>
          <span dir="auto" className="min-w-0 flex-1 truncate">
            {option.name}
          </span>
          <span dir="auto" className="max-w-[40%] shrink-0 truncate text-xs text-ink-3">
            {option.detail}
          </span>
        </li>
      ))}
    </ul>
  );
}

function memberOptions(team: Team, agents: Agent[], typed: Typed): Option[] {
  if (typed.sign !== "@") return [];
  const words = typed.words.toLowerCase();
  return agents
    .toSorted((a, b) => a.created_at.localeCompare(b.created_at))
    .map((agent, order) => ({ agent, order }))
    .filter(({ agent }) => agent.retired_at === null && agent.name.toLowerCase().startsWith(words))
    .map(({ agent, order }) => ({
      key: agent.id,
      icon: <Avatar name={agent.name} order={order} isCoordinator={agent.id === team.coordinator_id} className="size-6 text-xs" />,
      name: capitalize(agent.name),
      detail: agent.id === team.coordinator_id ? "Runs the team" : agent.node_title || agent.role,
      token: `@${agent.name}`,
      reference: null,
    }));
}

/** Tasks whose title has the words, newest first, and files that the server's search finds. */
function useWorkOptions(team: Team, typed: Typed): Option[] {
  const isWork = typed.sign === "#";
  const board = useQuery({ ...boardQuery(team.id), enabled: isWork });
  const query = typed.words.replace(/[/._-]+/g, " ").trim();
  const found = useQuery({
    queryKey: ["search", team.id, query],
    queryFn: () => unwrap(api.GET("/api/search", { params: { query: { query, team: team.id, limit: 20 } } })),
    enabled: isWork && query.length > 1,
    staleTime: 5_000,
  });
  return useMemo(() => {
    if (!isWork) return [];
    const words = typed.words.toLowerCase();
    const nodes = (board.data ?? []).filter((node) => node.lane === "work" && node.title.toLowerCase().includes(words)).toReversed();
    const files = (found.data ?? []).filter((one) => one.kind === "file" && isForAgents(one.ref));
    return [
      ...nodes.slice(0, MOST_TASKS).map((node): Option => {
        const reference = nodeReference(team.id, node);
        return { key: node.id, icon: <SquareCheck aria-hidden />, name: node.title, detail: STATUS_STYLES[displayStatusOf(node, false)].label, token: reference.token, reference };
      }),
      ...files.slice(0, MOST_FILES).map((file): Option => {
        const reference = fileReference(team.id, file.ref);
        return { key: file.ref, icon: <FileText aria-hidden />, name: file.ref.split("/").at(-1)!, detail: file.ref, token: reference.token, reference };
      }),
    ];
  }, [isWork, typed.words, board.data, found.data, team.id]);
}
