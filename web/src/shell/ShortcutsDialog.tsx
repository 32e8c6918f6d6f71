import { Fragment } from "react";
import { Dialog, Kbd } from "@/ui";
import { listShortcuts } from "@/shell/shortcutList";
import { useShell } from "@/shell/state";

export default function ShortcutsDialog() {
  const setOpen = useShell((state) => state.setOpen);
  return (
    <Dialog open onOpenChange={(isOpen) => setOpen("shortcutsDialog", isOpen)} title="Keyboard shortcuts" description="Single keys work outside text fields, while no message is begun. You can turn them off in the settings.">
      <dl className="grid grid-cols-[120px_1fr] gap-y-2 text-sm">
        {listShortcuts().map(([keys, description]) => (
          <Fragment key={keys}>
            <dt className="flex gap-1">
              {keys.split(" ").map((key, index) => (key === "/" && keys.length > 1) || key === "–" ? <span key={index} className="text-ink-3">{key}</span> : <Kbd key={index}>{key}</Kbd>)}
            </dt>
            <dd dir="auto">{description}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
