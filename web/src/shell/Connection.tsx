/** Connection: the connection status in the sidebar, and a banner while the connection is lost. Short interruptions are not shown. */
import { RefreshCw, TriangleAlert, Wifi, WifiOff } from "lucide-react";
import { useEffect, useState } from "react";
import { socket, useLive } from "@/live";
import { retryChunks, useChunks } from "@/live/chunks";
import { hasUnsaved } from "@/live/unsaved";
import { Button } from "@/ui";
import { useShell } from "@/parts/shellState";

/** An interruption shorter than this is not shown. */
const GRACE_MS = 1_500;

function useNow(active: boolean, intervalMs = 500): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!active) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [active, intervalMs]);
  return now;
}

export function ConnectionStatus() {
  const connection = useLive((state) => state.connection);
  const lostAt = useLive((state) => state.lostAt);
  const now = useNow(lostAt !== null);
  if (connection === "live" || (lostAt !== null && now - lostAt < GRACE_MS)) {
    return (
      <span className="flex items-center gap-1.5 text-xs text-done">
        <Wifi className="size-3.5" aria-hidden /> Live
      </span>
    );
  }
  return (
    <span className="flex items-center gap-1.5 text-xs text-wait">
      <WifiOff className="size-3.5" aria-hidden /> Reconnecting
    </span>
  );
}

export function ConnectionBanner() {
  const lostAt = useLive((state) => state.lostAt);
  const retryAt = useLive((state) => state.retryAt);
  const queuedCount = useLive((state) => state.unsent.filter((one) => one.state === "queued").length);
  const isOutdated = useLive((state) => state.isOutdated);
  const { waiting, hasFailed } = useChunks();
  const isPaletteMissing = useShell((state) => state.isPaletteMissing);
  const now = useNow(lostAt !== null);
  if (lostAt !== null && now - lostAt >= GRACE_MS) {
    const seconds = retryAt === null ? 0 : Math.max(0, Math.ceil((retryAt - now) / 1000));
    return (
      <div role="status" className="flex min-h-10 flex-wrap items-center gap-3 border-b border-wait-line bg-wait-bg px-4 py-1 text-sm text-wait">
        <WifiOff className="size-4 shrink-0" aria-hidden />
        <span className="flex-1">
          The server does not answer. {seconds > 0 ? `Next try in ${seconds} s.` : "Trying now…"} Your teams' work is safe
          {queuedCount > 0 ? `; ${queuedCount === 1 ? "one message goes" : `${queuedCount} messages go`} out when it is back` : ""}.
          {waiting > 0 && " What you opened appears then, too."}
          {isPaletteMissing && " “Jump to…” can be opened then."}
        </span>
        <Button size="sm" onClick={() => socket.reconnectNow()}>
          Try now
        </Button>
      </div>
    );
  }
  if (hasFailed && waiting > 0) {
    return (
      <div role="status" className="flex min-h-10 flex-wrap items-center gap-3 border-b border-wait-line bg-wait-bg px-4 py-1 text-sm text-wait">
        <TriangleAlert className="size-4 shrink-0" aria-hidden />
        <span className="flex-1">A part of this page could not be loaded. {hasUnsaved() ? "Save or send your files and changes before you reload; messages that you began are kept." : "What you wrote is kept."}</span>
        <Button size="sm" onClick={retryChunks}>
          Try again
        </Button>
        <Button size="sm" onClick={() => location.reload()}>
          Reload
        </Button>
      </div>
    );
  }
  if (!isOutdated) return null;
  return (
    <div role="status" className="flex min-h-10 items-center gap-3 border-b border-line bg-sunken px-4 py-1 text-sm">
      <RefreshCw className="size-4" aria-hidden />
      <span className="flex-1">The server runs a newer version than this page.</span>
      <Button size="sm" onClick={() => location.reload()}>
        Reload
      </Button>
    </div>
  );
}
