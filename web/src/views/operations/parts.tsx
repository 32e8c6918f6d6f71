/** Parts: the pieces that the sections of the Operations page share. */
import { useMutation, type UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { errorMessage } from "@/api/client";
import { readOn, useUnread } from "@/reading/ReadGate";
import { showToast } from "@/parts/toast";
import { Button, Dialog, DialogActions, ErrorPanel, Loading } from "@/ui";

export function Section({ title, description, action, children }: { title: string; description?: ReactNode; action?: ReactNode; children?: ReactNode }) {
  return (
    <section aria-label={title} className="rounded-md border border-line bg-surface">
      <div className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3">
        <div className="min-w-[200px] flex-1">
          <h2 dir="auto" className="text-sm font-semibold">{title}</h2>
          {description && <p dir="auto" className="mt-0.5 text-sm text-ink-2">{description}</p>}
        </div>
        {action}
      </div>
      {children && <div className="border-t border-line">{children}</div>}
    </section>
  );
}

/** The result of a query: loading, the error, or its data. */
export function Loaded<T>({ query, what, children }: { query: UseQueryResult<T>; what: string; children: (data: T) => ReactNode }) {
  if (query.isPending) return <Loading label={`Loading ${what}`} />;
  if (query.data === undefined) return <ErrorPanel title={`Loading ${what} failed`} detail={errorMessage(query.error)} onRetry={() => void query.refetch()} />;
  return children(query.data);
}

export const Problem = ({ error }: { error: unknown }) =>
  error ? (
    <p role="alert" className="basis-full rounded-sm bg-fail-bg px-3 py-2 text-sm text-fail">
      {errorMessage(error)}
    </p>
  ) : null;

export const Empty = ({ children }: { children: ReactNode }) => <p className="px-4 py-6 text-center text-sm text-ink-2">{children}</p>;

/** A number with its name, as in a row of figures. */
export function Figure({ name, value, note }: { name: string; value: ReactNode; note?: ReactNode }) {
  return (
    <div className="min-w-0 flex-1 px-4 py-3">
      <dt className="text-xs text-ink-3">{name}</dt>
      <dd className="tabular text-lg font-semibold">{value}</dd>
      {note && <dd className="text-xs break-words text-ink-2">{note}</dd>}
    </div>
  );
}

/** A list behind a line that says how long it is. */
export function Lines({ label, lines }: { label: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <details className="text-xs text-ink-2">
      <summary className="min-h-6 cursor-pointer font-medium pointer-coarse:min-h-11 pointer-coarse:leading-[44px]">
        {label}: {lines.length}
      </summary>
      <ul className="mb-1 ml-4 list-disc space-y-0.5">
        {lines.map((line) => (
          <li key={line} dir="auto" className="break-words">
            {line}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** What a person is asked once they have read all above, inside a `ReadGate`. Only this very button agrees: neither Enter nor Ctrl+Enter elsewhere in the dialog does. */
export function Consent({ question, agree, canAgree, onAgree, refuse = "Not now", onRefuse }: { question: string; agree: string; canAgree: boolean; onAgree: () => void; refuse?: string; onRefuse: () => void }) {
  const unread = useUnread();
  const id = useId();
  return (
    <DialogActions>
      <p id={id} className="min-w-0 flex-1 self-center text-sm text-ink-2 max-sm:basis-full">
        {unread.length === 0 ? (
          question
        ) : (
          <>
            Read it to its end, then you can agree.{" "}
            <button type="button" className="min-h-6 underline pointer-coarse:min-h-11" onClick={() => readOn(unread)}>
              Go on reading
            </button>
          </>
        )}
      </p>
      <Button onClick={onRefuse}>{refuse}</Button>
      <Button variant="primary" data-variant="consent" aria-describedby={id} disabled={!canAgree || unread.length > 0} onClick={onAgree}>
        {agree}
      </Button>
    </DialogActions>
  );
}

/** Asks before something is taken out of the settings. */
export function Removal({ name, what, remove, onRemoved, onClose }: { name: string; what: string; remove: () => Promise<unknown>; onRemoved: () => Promise<void>; onClose: () => void }) {
  const removal = useMutation({
    mutationFn: remove,
    onSuccess: () => {
      showToast(`${name} was removed.`);
      onClose();
      void onRemoved();
    },
  });
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title={`Remove ${name}?`} description={what}>
      <Problem error={removal.error} />
      <DialogActions>
        <Button onClick={onClose}>Keep it</Button>
        <Button variant="danger" disabled={removal.isPending} onClick={() => removal.mutate()}>
          Remove it
        </Button>
      </DialogActions>
    </Dialog>
  );
}
