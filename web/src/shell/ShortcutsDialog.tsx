import { Fragment } from "react";
import { Dialog, Kbd } from "@/ui";
import { listKeys } from "@/shell/shortcutList";
import { useShell } from "@/shell/state";

export default function KeysSheet() {
  const open = useShell((state) => state.open);
  return (
    <Dialog open onOpenChange={(now) => open("keysSheet", now)} title="Keyboard shortcuts" description="Single keys work outside text fields; settings turn them off.">
      <dl className="grid grid-cols-[120px_1fr] gap-y-2 text-sm">
        {listKeys().map(([keys, words]) => (
          <Fragment key={keys}>
            <dt className="flex gap-1">
              {keys.split(" ").map((key, index) => (key === "/" && keys.length > 1) || key === "–" ? <span key={index} className="text-ink-3">{key}</span> : <Kbd key={index}>{key}</Kbd>)}
            </dt>
            <dd>{words}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
