/** Section: one part of the settings page, with its heading, its form and its button to save. */
import type { FormEvent, ReactNode } from "react";
import { useUnsaved } from "@/live/unsaved";
import type { Form } from "@/views/settings/useEdits";
import { Button, Problem } from "@/ui";

export interface Part {
  /** The anchor in the page's address, such as `model`. */
  id: string;
  title: string;
}

export function Section({ id, title, about, children }: Part & { about?: ReactNode; children: ReactNode }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`} className="scroll-mt-4 border-b border-line pb-8 last:border-b-0">
      <h2 id={`${id}-title`} dir="auto" className="text-md font-semibold" tabIndex={-1}>
        {title}
      </h2>
      {about && <p className="mt-0.5 max-w-[66ch] text-sm text-ink-2">{about}</p>}
      <div className="mt-4 flex flex-col gap-4 text-sm">{children}</div>
    </section>
  );
}

interface Saving {
  isPending: boolean;
  error: unknown;
}

interface SectionFormProps {
  save: Saving;
  isChanged: boolean;
  onSave: () => void;
  label?: string;
  /** The edits of the form, which says if somebody else has changed the same fields. They are kept in the tab until they are saved or dropped. */
  edits?: Pick<Form<object>, "isChanged" | "isChangedElsewhere" | "isRestored" | "forget">;
  children: ReactNode;
}

/** A form that saves one section. Its button is disabled while nothing has changed. */
export function SectionForm({ save, isChanged, onSave, label = "Save", edits, children }: SectionFormProps) {
  useUnsaved(isChanged && !edits);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isChanged && !save.isPending) onSave();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4 font-medium">
      {children}
      <Problem of={save.error} className="text-sm font-normal" />
      {edits?.isRestored && !save.isPending && (
        <p role="status" className="rounded-sm bg-wait-bg px-3 py-2 font-normal text-wait">
          Changes that you made here before and did not save are back.
        </p>
      )}
      {edits?.isChangedElsewhere && !save.isPending && (
        <p role="status" className="rounded-sm bg-wait-bg px-3 py-2 font-normal text-wait">
          What you edit here was changed elsewhere meanwhile. If you save, yours replaces it.
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" type="submit" disabled={!isChanged || save.isPending}>
          {save.isPending ? "Saving…" : label}
        </Button>
        {edits?.isChanged && !save.isPending && (
          <Button variant="ghost" onClick={edits.forget}>
            Drop my changes
          </Button>
        )}
      </div>
    </form>
  );
}


/** Two columns of fields, one on narrow screens. */
export const Fields = ({ children }: { children: ReactNode }) => <div className="grid grid-cols-2 gap-x-4 gap-y-4 max-sm:grid-cols-1">{children}</div>;
