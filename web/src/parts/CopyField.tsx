/** CopyField: a text that is to be copied, such as a link: shown whole, with a button. */
import { Copy } from "lucide-react";
import { copyText } from "@/lib/clipboard";
import { showToast } from "@/parts/toast";
import { Button, Input } from "@/ui";

export function CopyField({ label, text }: { label: string; text: string }) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Input dir="ltr" readOnly aria-label={label} value={text} onFocus={(event) => event.currentTarget.select()} className="min-w-0 flex-1 basis-52 font-mono text-xs" />
      <Button onClick={() => void copyText(text).then(() => showToast("Copied."))}>
        <Copy className="size-4" aria-hidden /> Copy
      </Button>
    </div>
  );
}
