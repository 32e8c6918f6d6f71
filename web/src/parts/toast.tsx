/** Toasts of the team screens: a result with an optional Undo, and an error. */
import { toast } from "@/ui/toast";
import { errorMessage } from "@/api/client";
import { Button } from "@/ui";

export function showToast(text: string, undo?: () => void): void {
  const show = undo ? toast.custom : toast.report;
  show((id) => (
    <div role="status" className="flex items-center gap-3 rounded-md border border-line bg-surface px-4 py-2.5 text-sm shadow-high">
      <span dir="auto" className="min-w-0 flex-1">{text}</span>
      {undo && (
        <Button
          size="sm"
          className="pointer-events-auto"
          onClick={() => {
            toast.dismiss(id);
            undo();
          }}
        >
          Undo
        </Button>
      )}
    </div>
  ));
}

/** Show a sentence alone. */
export function showNote(text: string, isError = false): void {
  toast.report(() => <div dir="auto" className={`w-[340px] rounded-md border max-md:w-full bg-surface px-4 py-3 text-sm shadow-high ${isError ? "border-fail/40 text-fail" : "border-line"}`}>{text}</div>);
}

export function showError(title: string, error: unknown): void {
  toast.report(
    () => (
      <div role="alert" className="max-w-[46ch] rounded-md border border-fail/30 bg-fail-bg px-4 py-2.5 text-sm shadow-high">
        <p dir="auto" className="font-semibold text-fail">{title}</p>
        <p className="text-ink-2">{errorMessage(error)}</p>
      </div>
    ),
    { duration: 9000 },
  );
}
