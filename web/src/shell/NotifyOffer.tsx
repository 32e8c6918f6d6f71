/** NotifyOffer: at the first open question, offers notifications of the browser. It waits in the sidebar and asks once. */
import { BellRing } from "lucide-react";
import { useState } from "react";
import { readStored, writeStored } from "@/lib/storage";
import { Button } from "@/ui";
import { useShell } from "@/parts/shellState";
import { askForNotifications } from "@/views/home/notifyPermission";

export default function NotifyOffer() {
  const { notifications, update } = useShell();
  const [isDone, setIsDone] = useState(() => readStored("notify-offer") !== null);
  const [problem, setProblem] = useState("");
  const close = () => {
    writeStored("notify-offer", "done");
    setIsDone(true);
  };
  const turnOn = async () => {
    const refusal = await askForNotifications();
    writeStored("notify-offer", "done");
    if (refusal) return setProblem(refusal);
    update({ notifications: true });
    setIsDone(true);
  };
  // The browser asks the person only as long as they have not decided.
  if (isDone || notifications || (!problem && (!("Notification" in window) || Notification.permission !== "default"))) return null;
  return (
    <section aria-label="Notifications" className="mx-2 mb-2 rounded-md border border-line bg-surface p-3 text-xs">
      <p className="flex gap-2 text-ink-2">
        <BellRing className="size-4 shrink-0 text-ink-3" aria-hidden />
        {problem || "Get a notification when a team needs you, finishes or fails?"}
      </p>
      <div className="mt-2 flex justify-end gap-1.5">
        {!problem && (
          <Button size="sm" variant="primary" onClick={() => void turnOn()}>
            Turn on
          </Button>
        )}
        <Button size="sm" variant="ghost" onClick={close}>
          {problem ? "Close" : "Not now"}
        </Button>
      </div>
    </section>
  );
}
