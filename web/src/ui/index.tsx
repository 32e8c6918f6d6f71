/** ui: the basic components that all screens share. Only a state has a colour; everything else is black, white or grey. */
import { type ComponentProps, Fragment, type ReactNode } from "react";
import { errorMessage } from "@/api/client";
import { cx } from "@/lib/cx";
import type { Tone } from "@/lib/endings";
import { Button, type ButtonProps } from "@/ui/button";
import { Tip } from "@/ui/tip";

export { Dialog, Menu, MenuItem, MenuSeparator, Sheet } from "@/ui/lazyOverlays";
export { Button, Tip, type Tone };

/** A button that shows only an icon. `label` is its accessible name and the text of its tooltip. */
export function IconButton({ label, keys, className, variant = "ghost", ...rest }: ButtonProps & { label: string; keys?: string }) {
  return (
    <Tip text={label} keys={keys}>
      <Button variant={variant} size="icon" aria-label={label} className={className} {...rest} />
    </Tip>
  );
}

export function Kbd({ children, className }: { children: ReactNode; className?: string }) {
  return (
    <kbd className={cx("inline-flex h-[18px] pointer-coarse:hidden min-w-[18px] items-center justify-center rounded-xs border base:border-line-2 px-1 font-sans text-2xs base:text-ink-3", className)}>
      {children}
    </kbd>
  );
}

export type AgentStatus = "idle" | "queued" | "working" | "waiting" | "waiting_for_you" | "stopped" | "left" | "failed";
export const STATUS_LABELS: Record<AgentStatus, string> = {
  idle: "Idle",
  queued: "Queued",
  working: "Working",
  waiting: "Waiting",
  waiting_for_you: "Waiting for you",
  stopped: "Stopped",
  left: "Former member",
  failed: "Failed",
};

/** An agent's status as a dot. Each status has its own shape, so that people who do not see the colour can tell them apart. */
export function StatusDot({ status, className }: { status: AgentStatus; className?: string }) {
  const shape: Record<AgentStatus, string> = {
    idle: "rounded-full bg-done-dot",
    queued: "rounded-full border-2 border-work-dot",
    working: "rounded-full bg-work-dot pulse",
    waiting: "rounded-full border-2 border-retired border-dashed",
    waiting_for_you: "rotate-45 rounded-[1px] bg-wait-dot",
    stopped: "rounded-[1px] bg-retired",
    left: "rounded-full border-[1.5px] border-retired",
    failed: "rounded-full bg-fail-dot",
  };
  return <span role="img" aria-label={STATUS_LABELS[status]} className={cx("inline-block size-2 shrink-0", shape[status], className)} />;
}

const CHIP_TONES: Record<Tone, string> = {
  plain: "base:bg-sunken text-ink-2",
  work: "bg-work-bg text-work",
  done: "bg-done-bg text-done",
  wait: "bg-wait-bg text-wait",
  fail: "bg-fail-bg text-fail",
};
export function Chip({ tone = "plain", className, children }: { tone?: Tone; className?: string; children: ReactNode }) {
  return <span className={cx("inline-flex items-center gap-1.5 base:rounded-sm base:px-2 base:py-0.5 base:text-xs font-medium whitespace-nowrap", CHIP_TONES[tone], className)}>{children}</span>;
}

export function Badge({ n, isUrgent = false, label }: { n: number; isUrgent?: boolean; label: string }) {
  if (n === 0) return null;
  return (
    <span
      aria-label={label}
      title={label}
      role="img"
      className={cx("tabular inline-flex h-[18px] min-w-[18px] items-center justify-center rounded-full px-1 text-2xs font-semibold", isUrgent ? "bg-badge text-badge-ink" : "bg-ink text-paper")}
    >
      {n > 99 ? "99+" : n}
    </span>
  );
}

/** A member's avatar. `order` is the member's place in the order of joining; each next hue is a golden angle (137.5°) further, so that neighbours differ. */
export function Avatar({ name, order, isCoordinator = false, className }: { name: string; order: number; isCoordinator?: boolean; className?: string }) {
  if (isCoordinator) {
    return (
      <span aria-hidden className={cx("flex base:size-8 shrink-0 items-center justify-center base:rounded-md bg-ink text-paper", className)}>
        <Logo className="size-5" />
      </span>
    );
  }
  const hue = (order * 137.5 + 40) % 360;
  return (
    <span
      aria-hidden
      style={{ "--h": hue } as React.CSSProperties}
      className={cx(
        "flex base:size-8 shrink-0 items-center justify-center base:rounded-md bg-[hsl(var(--h)_45%_89%)] base:text-sm font-semibold text-[hsl(var(--h)_45%_26%)] dark:bg-[hsl(var(--h)_26%_24%)] dark:text-[hsl(var(--h)_55%_82%)]",
        className,
      )}
    >
      {name.charAt(0).toUpperCase()}
    </span>
  );
}

export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 20 20" className={className} fill="none" stroke="currentColor" strokeWidth="1.5" aria-hidden>
      <path d="M10 6.5V10M10 10l-3.6 3.3M10 10l3.6 3.3" />
      <circle cx="10" cy="4.6" r="1.8" />
      <circle cx="5" cy="14.6" r="1.8" />
      <circle cx="15" cy="14.6" r="1.8" />
    </svg>
  );
}

export function Meter({ value, max, tone = "plain", label }: { value: number; max: number; tone?: Tone; label: string }) {
  const fraction = max > 0 ? Math.min(1, value / max) : 0;
  const fill: Record<Tone, string> = { plain: "bg-ink-2", work: "bg-work-dot", done: "bg-done-dot", wait: "bg-wait-dot", fail: "bg-fail-dot" };
  return (
    <div role="meter" aria-label={label} aria-valuenow={Math.round(fraction * 100)} aria-valuemin={0} aria-valuemax={100} className="h-1.5 overflow-hidden rounded-full bg-line">
      <div className={cx("h-full rounded-full", fill[tone])} style={{ width: `${fraction * 100}%` }} />
    </div>
  );
}

/** The placeholder of an empty list or page: what will appear here, and at most one action. */
export function EmptyState({ icon, title, children, action, isPage = false }: { icon?: ReactNode; title: string; children?: ReactNode; action?: ReactNode; isPage?: boolean }) {
  const Title = isPage ? "h1" : "h2";
  return (
    <div className="flex min-h-full flex-col items-center justify-center gap-2 p-8 text-center max-md:px-4">
      {icon && <div className="mb-1 text-ink-3 [&_svg]:size-7 [&_svg]:stroke-[1.5]">{icon}</div>}
      <Title dir="auto" className="text-md font-semibold">{title}</Title>
      {children && <div className="max-w-[46ch] text-sm text-ink-2">{children}</div>}
      {action && <div className="mt-3">{action}</div>}
    </div>
  );
}

/** A loading indicator. `label` says what is being loaded. */
export function Loading({ label, className }: { label: string; className?: string }) {
  return (
    <div role="status" className={cx("flex items-center gap-2 base:p-6 text-sm text-ink-3", className)}>
      <span className="size-2 rounded-full bg-work-dot pulse" aria-hidden />
      {label}…
    </div>
  );
}

/** An error: what failed, why, and a button to try again. */
export function ErrorPanel({ title, detail, onRetry }: { title: string; detail: string; onRetry?: () => void }) {
  return (
    <div role="alert" className="m-6 max-w-[60ch] rounded-md border border-fail/30 bg-fail-bg p-4 text-sm">
      <p className="font-semibold text-fail" dir="auto">{title}</p>
      <p className="mt-1 text-ink-2" dir="auto">{detail}</p>
      {onRetry && (
        <Button size="sm" className="mt-3" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** What went wrong beside the thing that it happened to, if anything did: a sentence, or an error. */
export const Problem = ({ of, className = "text-sm" }: { of: unknown; className?: string }) => (of ? <p role="alert" className={`text-fail ${className}`}>{errorMessage(of)}</p> : null);

/** The buttons at the end of a dialog. They stay in sight while a long form scrolls under them. */
export const DialogActions = ({ children }: { children: ReactNode }) => <div className="sticky -bottom-6 -mx-6 -mb-6 flex flex-wrap justify-end gap-2 border-t border-line bg-surface px-6 py-4">{children}</div>;

const inputStyle = "base:w-full rounded-sm border border-control bg-surface base:px-3 base:text-sm";
export const Input = ({ className, ...rest }: ComponentProps<"input">) => <input dir="auto" className={cx(inputStyle, "base:h-9 pointer-coarse:h-10", className)} {...rest} />;
export const Textarea = ({ className, ...rest }: ComponentProps<"textarea">) => <textarea dir="auto" className={cx(inputStyle, "py-2", className)} {...rest} />;

/** A group of toggle buttons of which one is pressed. */
export function Pills<T extends string>({ value, onChange, options, label }: { value: T; onChange: (value: T) => void; options: readonly (readonly [T, string])[]; label: string }) {
  return (
    <div role="group" aria-label={label} className="flex flex-wrap gap-1">
      {options.map(([name, text]) => (
        <button dir="auto"
          key={name}
          type="button"
          aria-pressed={value === name}
          onClick={() => onChange(name)}
          className={cx("h-7 rounded-full px-3 text-xs font-medium whitespace-nowrap pointer-coarse:h-10", value === name ? "bg-ink text-paper" : "text-ink-2 hover:bg-hover")}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/** The bar at the top of a screen: its title and its actions. What is in the `middle` takes the width that they leave. */
export function Header({ lead, title, subtitle, middle, children }: { lead?: ReactNode; title: ReactNode; subtitle?: string; middle?: ReactNode; children?: ReactNode }) {
  // A name in another direction does not change the order of what stands beside it.
  const parts = subtitle?.split(" · ") ?? [];
  return (
    <header className="flex h-[52px] shrink-0 items-center gap-3 border-b border-line px-4 max-md:px-2">
      {lead}
      <div className={cx("min-w-0", middle ? "md:max-w-1/2 max-md:flex-1" : "flex-1")}>
        <h1 dir="auto" className="truncate text-left text-md leading-5 font-semibold">{title}</h1>
        {subtitle && (
          <p dir={parts.length > 1 ? "ltr" : "auto"} className="truncate text-left text-xs text-ink-3">
            {parts.map((part, at) => (
              <Fragment key={at}>
                {at > 0 && " · "}
                <bdi>{part}</bdi>
              </Fragment>
            ))}
          </p>
        )}
      </div>
      {middle}
      <div className="flex shrink-0 items-center gap-1.5">{children}</div>
    </header>
  );
}
