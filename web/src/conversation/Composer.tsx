/** Composer: the text field for messages to one agent, with attachments. It is never disabled; sending and stopping are separate buttons. */
import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { toast } from "@/ui/toast";
import { type Agent, api, errorMessage, type Team, unwrap } from "@/api/client";
import { sendMessage, useLive } from "@/live";
import { cx } from "@/lib/cx";
import { capitalize, fileSize } from "@/lib/format";
import { Button, IconButton, Kbd } from "@/ui";
import { ToastMessage } from "@/conversation/AgentPage";
import { storedText, useComposer } from "@/conversation/composerState";

/** The server's limits for the attachments of one message. */
const MAX_FILES = 10;
const MAX_FILE_BYTES = 10 * 2 ** 20;
const MAX_TOTAL_BYTES = 11 * 2 ** 20;
interface Attachment {
  name: string;
  media_type: string;
  data: string;
  bytes: number;
}

/** Return the hint below the text field: when the agent answers. */
function replyHint(agent: Agent, isCoordinator: boolean): string {
  const name = capitalize(agent.name);
  if (agent.retired_at !== null) return `${name} is a former member; a message brings it back`;
  if (isCoordinator) return "Answers at once, while the work continues";
  if (agent.status === "working") return `${name} answers at once and reads this between steps`;
  return agent.status === "waiting_for_you" ? `${name} waits for your answer above` : `${name} answers at once`;
}

export function Composer({ team, agent, isCoordinator, agents }: { team: Team; agent: Agent; isCoordinator: boolean; agents: Agent[] }) {
  const text = useComposer((state) => state.texts[agent.id]) ?? storedText(agent.id);
  const focusRequests = useComposer((state) => state.focusRequests);
  const setText = useComposer((state) => state.setText);
  const isLive = useLive((state) => state.connection === "live");
  const [files, setFiles] = useState<Attachment[]>([]);
  const [isNudge, setIsNudge] = useState(false);
  const [isDragOver, setIsDragOver] = useState(false);
  const input = useRef<HTMLTextAreaElement>(null);
  const filePicker = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const element = input.current;
    if (!element) return;
    // Reset the height first: scrollHeight is never less than the current height.
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 220)}px`;
  }, [text]);
  useEffect(() => {
    if (focusRequests > 0) input.current?.focus();
  }, [focusRequests]);

  const send = () => {
    const trimmed = text.trim();
    if (!trimmed) return;
    sendMessage(agent.id, trimmed, isNudge ? "nudge" : "send", files.map(({ bytes: _, ...file }) => file));
    setText(agent.id, "");
    setFiles([]);
    // This button exists only while the conversation is scrolled up. Clicking it shows the message that was just sent.
    document.getElementById("to-end")?.click();
  };
  const onKey = (event: KeyboardEvent) => {
    // On touch keyboards Enter is a new line. While an input method composes a character, Enter ends the composition.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && !isTouch) {
      event.preventDefault();
      send();
    }
    if (event.key === "Escape") input.current?.blur();
  };
  const attach = async (chosen: File[]) => {
    const added: Attachment[] = [];
    let totalBytes = files.reduce((sum, file) => sum + file.bytes, 0);
    for (const file of chosen.slice(0, MAX_FILES - files.length)) {
      totalBytes += file.size;
      if (file.size > MAX_FILE_BYTES || totalBytes > MAX_TOTAL_BYTES) {
        toast.custom(() => <ToastMessage isError text={`${file.name} is too large: a message carries ${fileSize(MAX_TOTAL_BYTES)} at most.`} />);
        break;
      }
      added.push({ name: file.name.slice(0, 200), media_type: mediaType(file), data: await readBase64(file), bytes: file.size });
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
    setIsDragOver(false);
    void attach([...event.dataTransfer.files]);
  };
  const isBusy = agent.status === "working" || agent.status === "waiting";
  const canBroadcast = isCoordinator && agents.filter((one) => one.retired_at === null).length > 1;
  return (
    <div className="shrink-0 px-4 pt-1 pb-2 max-md:px-2">
      <div
        onDragOver={(event) => {
          event.preventDefault();
          setIsDragOver(true);
        }}
        onDragLeave={() => setIsDragOver(false)}
        onDrop={onDrop}
        className={cx("rounded-lg border border-control bg-surface shadow-low focus-within:border-ink", isDragOver && "border-dashed border-work-dot")}
      >
        <textarea dir="auto"
          ref={input}
          id="composer"
          rows={1}
          value={text}
          aria-label={`Message ${capitalize(agent.name)}`}
          placeholder={`Message ${capitalize(agent.name)}…`}
          maxLength={20_000}
          onChange={(event) => setText(agent.id, event.target.value)}
          onKeyDown={onKey}
          onPaste={onPaste}
          className="scroll block max-h-[220px] w-full resize-none bg-transparent px-3.5 pt-3 pb-1 outline-none"
        />
        {files.length > 0 && (
          <ul className="flex flex-wrap gap-2 px-3 py-1">
            {files.map((file, index) => (
              <li dir="auto" key={index} className="flex items-center gap-1.5 rounded-sm border border-line bg-sunken py-0.5 pr-1 pl-2 text-xs">
                {file.name} <span className="text-ink-3">{fileSize(file.bytes)}</span>
                <button type="button" aria-label={`Remove ${file.name}`} className="flex size-6 items-center justify-center" onClick={() => setFiles(files.filter((_, other) => other !== index))}>
                  <X className="size-3.5" />
                </button>
              </li>
            ))}
          </ul>
        )}
        <div className="flex items-center gap-1 p-2">
          <input ref={filePicker} type="file" multiple hidden onChange={(event) => void attach([...(event.target.files ?? [])]).then(() => filePicker.current && (filePicker.current.value = ""))} />
          <IconButton label="Attach files" onClick={() => filePicker.current?.click()}>
            <Paperclip className="size-4" />
          </IconButton>
          {isBusy && (
            <Button variant={isNudge ? "primary" : "ghost"} size="sm" aria-pressed={isNudge} onClick={() => setIsNudge(!isNudge)} title="Adds the message to the current work; the agent does not reply">
              Don't reply
            </Button>
          )}
          <span className="min-w-0 flex-1 truncate px-1 text-xs text-ink-3 max-sm:opacity-0">{isLive ? replyHint(agent, isCoordinator) : "Not connected: your message is sent when the connection is back"}</span>
          {canBroadcast && text.trim() && <BroadcastButton team={team} text={text} onSent={() => setText(agent.id, "")} />}
          {isBusy && agent.node_id && <StopButton agent={agent} />}
          <Button variant="primary" onClick={send} disabled={!text.trim()} aria-label="Send">
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

function BroadcastButton({ team, text, onSent }: { team: Team; text: string; onSent: () => void }) {
  const broadcast = () =>
    unwrap(api.POST("/api/teams/{team}/broadcast", { params: { path: { team: team.id } }, body: { message: text.trim() } })).then(
      () => {
        onSent();
        toast.custom(() => <ToastMessage text="The message was sent to everyone on the team." />);
      },
      (error: unknown) => void toast.custom(() => <ToastMessage text={errorMessage(error)} isError />),
    );
  return (
    <Button variant="ghost" size="sm" onClick={() => void broadcast()} className="max-sm:hidden">
      Tell everyone
    </Button>
  );
}

/** Cancels the agent's current task after a second click. The team continues. */
function StopButton({ agent }: { agent: Agent }) {
  const [isConfirming, setIsConfirming] = useState(false);
  useEffect(() => {
    if (!isConfirming) return;
    const timer = setTimeout(() => setIsConfirming(false), 4000);
    return () => clearTimeout(timer);
  }, [isConfirming]);
  const stop = () => {
    setIsConfirming(false);
    unwrap(api.POST("/api/nodes/{node}/cancel", { params: { path: { node: agent.node_id! } } })).catch((error: unknown) => toast.custom(() => <ToastMessage text={errorMessage(error)} isError />));
  };
  return (
    <Button variant={isConfirming ? "danger" : "outline"} onClick={() => (isConfirming ? stop() : setIsConfirming(true))} title={`Ends “${agent.node_title}” at its next step`}>
      <Square className="size-3.5" /> {isConfirming ? "Stop it now?" : "Stop"}
    </Button>
  );
}

/** Return the file's media type; the server refuses types with other characters. */
function mediaType(file: File): string {
  return /^[a-z]+\/[A-Za-z0-9.+-]+$/.test(file.type) ? file.type : "application/octet-stream";
}

function readBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}
