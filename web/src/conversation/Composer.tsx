/** Composer: words for one member. It never blocks; sending and stopping are two buttons. */
import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { toast } from "sonner";
import { type Agent, api, explain, type Team, unwrap } from "@/api/client";
import { say, useLive } from "@/live";
import { cx } from "@/lib/cx";
import { capital, size } from "@/lib/format";
import { Button, IconButton, Kbd } from "@/ui";
import { Note } from "@/conversation/AgentPage";
import { kept, useComposer } from "@/conversation/composerState";

const MOST_FILES = 10;
const MOST_BYTES = 10 * 2 ** 20;
const ALL_BYTES = 11 * 2 ** 20;
interface Attached {
  name: string;
  media_type: string;
  data: string;
  bytes: number;
}

/** When the words will be heard. */
function hint(agent: Agent, isCoordinator: boolean): string {
  const name = capital(agent.name);
  if (agent.retired_at !== null) return `${name} has left; a message calls it back`;
  if (isCoordinator) return "Answers at once, while the work continues";
  if (agent.status === "working") return `${name} answers at once and hears this between steps`;
  return agent.status === "waiting_for_you" ? `${name} waits for your answer above` : `${name} answers at once`;
}

export function Composer({ team, agent, isCoordinator, agents }: { team: Team; agent: Agent; isCoordinator: boolean; agents: Agent[] }) {
  const words = useComposer((state) => state.words[agent.id]) ?? kept(agent.id);
  const focus = useComposer((state) => state.focus);
  const write = useComposer((state) => state.write);
  const isLive = useLive((state) => state.phase === "live");
  const [files, setFiles] = useState<Attached[]>([]);
  const [isNudge, setIsNudge] = useState(false);
  const [isOver, setIsOver] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
  }, [words]);
  useEffect(() => {
    if (focus > 0) box.current?.focus();
  }, [focus]);

  const send = () => {
    const text = words.trim();
    if (!text) return;
    say(agent.id, text, isNudge ? "nudge" : "send", files.map(({ bytes: _, ...file }) => file));
    write(agent.id, "");
    setFiles([]);
    document.getElementById("to-end")?.click();
  };
  const onKey = (event: KeyboardEvent) => {
    const isTouch = matchMedia("(pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && !isTouch) {
      event.preventDefault();
      send();
    }
    if (event.key === "Escape") box.current?.blur();
  };
  const attach = async (found: File[]) => {
    const added: Attached[] = [];
    let all = files.reduce((sum, file) => sum + file.bytes, 0);
    for (const file of found.slice(0, MOST_FILES - files.length)) {
      all += file.size;
      if (file.size > MOST_BYTES || all > ALL_BYTES) {
        toast.custom(() => <Note isBad words={`${file.name} is too large: a message carries ${size(ALL_BYTES)} at most.`} />);
        break;
      }
      added.push({ name: file.name.slice(0, 200), media_type: mediaType(file), data: await base64(file), bytes: file.size });
    }
    setFiles([...files, ...added]);
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      void attach([...event.clipboardData.files]);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    void attach([...event.dataTransfer.files]);
  };
  const isBusy = agent.status === "working" || agent.status === "waiting";
  const canBroadcast = isCoordinator && agents.filter((one) => one.retired_at === null).length > 1;
  return (
    <div className="shrink-0 px-4 pt-1 pb-2 max-md:px-2">
      <div
        onDragOver={(event) => {
          event.preventDefault();
          setIsOver(true);
        }}
        onDragLeave={() => setIsOver(false)}
        onDrop={onDrop}
        className={cx("rounded-lg border border-control bg-surface shadow-low focus-within:border-ink", isOver && "border-dashed border-work-dot")}
      >
        <textarea
          ref={box}
          id="composer"
          rows={1}
          value={words}
          aria-label={`Message ${capital(agent.name)}`}
          placeholder={`Message ${capital(agent.name)}…`}
          maxLength={20_000}
          onChange={(event) => write(agent.id, event.target.value)}
          onKeyDown={onKey}
          onPaste={onPaste}
          className="scroll block max-h-[220px] w-full resize-none bg-transparent px-3.5 pt-3 pb-1 outline-none"
        />
        {files.length > 0 && (
          <ul className="flex flex-wrap gap-2 px-3 py-1">
            {files.map((file, index) => (
              <li key={index} className="flex items-center gap-1.5 rounded-sm border border-line bg-sunken py-0.5 pr-1 pl-2 text-xs">
                {file.name} <span className="text-ink-3">{size(file.bytes)}</span>
                <button type="button" aria-label={`Remove ${file.name}`} className="flex size-6 items-center justify-center" onClick={() => setFiles(files.filter((_, at) => at !== index))}>
                  <X className="size-3.5" />
                </button>
              </li>
            ))}
          </ul>
        )}
        <div className="flex items-center gap-1 p-2">
          <input ref={picker} type="file" multiple hidden onChange={(event) => void attach([...(event.target.files ?? [])]).then(() => picker.current && (picker.current.value = ""))} />
          <IconButton label="Attach files" onClick={() => picker.current?.click()}>
            <Paperclip className="size-4" />
          </IconButton>
          {isBusy && (
            <Button look={isNudge ? "ink" : "plain"} size="sm" aria-pressed={isNudge} onClick={() => setIsNudge(!isNudge)} title="Adds the message to the current work; the agent does not reply">
              No reply
            </Button>
          )}
          <span className="min-w-0 flex-1 truncate px-1 text-xs text-ink-3 max-sm:opacity-0">{isLive ? hint(agent, isCoordinator) : "Not connected: your message is sent when the connection is back"}</span>
          {canBroadcast && words.trim() && <Everyone team={team} words={words} onSent={() => write(agent.id, "")} />}
          {isBusy && agent.node_id && <StopButton agent={agent} />}
          <Button look="ink" onClick={send} disabled={!words.trim()} aria-label="Send">
            <span className="max-sm:sr-only">Send</span> <ArrowUp className="size-4" />
          </Button>
        </div>
      </div>
      <div className="flex h-5 items-center justify-end gap-1.5 pt-1 text-2xs text-ink-3 max-md:hidden">
        <Kbd>⏎</Kbd> send <Kbd className="ml-2">⇧ ⏎</Kbd> new line <Kbd className="ml-2">?</Kbd> all keys
      </div>
    </div>
  );
}

function Everyone({ team, words, onSent }: { team: Team; words: string; onSent: () => void }) {
  const tell = () =>
    unwrap(api.POST("/api/teams/{team}/broadcast", { params: { path: { team: team.id } }, body: { message: words.trim() } })).then(
      () => {
        onSent();
        toast.custom(() => <Note words="The message was sent to everyone on the team." />);
      },
      (error: unknown) => void toast.custom(() => <Note words={explain(error)} isBad />),
    );
  return (
    <Button look="plain" size="sm" onClick={() => void tell()} className="max-sm:hidden">
      Tell everyone
    </Button>
  );
}

/** Ends the task the member is at; the team goes on. */
function StopButton({ agent }: { agent: Agent }) {
  const [asks, setAsks] = useState(false);
  useEffect(() => {
    if (!asks) return;
    const timer = setTimeout(() => setAsks(false), 4000);
    return () => clearTimeout(timer);
  }, [asks]);
  const stop = () => {
    setAsks(false);
    unwrap(api.POST("/api/nodes/{node}/cancel", { params: { path: { node: agent.node_id! } } })).catch((error: unknown) => toast.custom(() => <Note words={explain(error)} isBad />));
  };
  return (
    <Button look={asks ? "fail" : "line"} onClick={() => (asks ? stop() : setAsks(true))} title={`Ends “${agent.node_title}” at its next step`}>
      <Square className="size-3.5" /> {asks ? "Stop it now?" : "Stop"}
    </Button>
  );
}

function mediaType(file: File): string {
  return /^[a-z]+\/[A-Za-z0-9.+-]+$/.test(file.type) ? file.type : "application/octet-stream";
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}
