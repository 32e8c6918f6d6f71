/** EditingChip: says that the composer edits a message, and offers to stop the work that was begun for it. */
import { useQuery } from "@tanstack/react-query";
import { Pencil, X } from "lucide-react";
import { workOfMessageQuery } from "@/api/queries";
import { plural } from "@/lib/format";
import { Literal } from "@/reading/Literal";
import { IconButton } from "@/ui";
import { type Editing, setStopsWork } from "@/views/composer/editing";

interface Props extends Editing {
  team: string;
  agentId: string;
  onLeave: () => void;
}

export default function EditingChip({ team, agentId, edits, files, stopsWork, onLeave }: Props) {
  const work = useQuery(workOfMessageQuery(team, edits)).data ?? [];
  return (
    <div className="pt-1.5 pr-2 pl-3.5 text-xs">
      <p role="status" className="flex items-center gap-1.5 font-medium text-work">
        <Pencil className="size-3.5 shrink-0" aria-hidden />
        <span className="min-w-0 flex-1 truncate">
          Editing your message{files > 0 && `, with its ${plural(files, "file")}`}
        </span>
        <IconButton label="Stop editing" onClick={onLeave}>
          <X className="size-3.5" />
        </IconButton>
      </p>
      {work.length > 0 && (
        <label className="flex min-h-7 items-center gap-2 pointer-coarse:min-h-11">
          <input type="checkbox" checked={stopsWork} onChange={(event) => setStopsWork(agentId, event.target.checked)} />
          <span className="shrink-0">Also stop the work begun for it ({work.length})</span>
          <span dir="auto" className="min-w-0 truncate text-ink-3 max-sm:sr-only">
            <Literal text={work.map(({ title }) => title).join(", ")} keepEmoji />
          </span>
        </label>
      )}
    </div>
  );
}
