/** Overlays: dialogs, side panels and menus. `lazyOverlays.tsx` loads this file when the first of them is opened. */
import { X } from "lucide-react";
import { Dialog as RadixDialog, DropdownMenu } from "radix-ui";
import { type ComponentProps, type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import { isComposing } from "@/lib/composing";
import { cx } from "@/lib/cx";
import { useUnsaved } from "@/live/unsaved";
import { Button } from "@/ui/button";

interface OverlayProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  children: ReactNode;
  className?: string;
}
export type DialogProps = OverlayProps & { description?: string };
export type SheetProps = OverlayProps & { side: "left" | "right" };

/** A modal dialog. Radix traps the focus in it; when it closes, the focus returns to where it was. */
export function Dialog({ open, onOpenChange, title, description, children, className }: DialogProps) {
  const returnTo = useRef<Element | null>(null);
  // Most dialogs hold a form.
  useUnsaved(open);
  return (
    <RadixDialog.Root open={open} onOpenChange={onOpenChange}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <RadixDialog.Content
          aria-describedby={undefined}
          onKeyDown={submitOnCtrlEnter}
          // Radix returns the focus to the dialog's own trigger alone, and our dialogs have none.
          onOpenAutoFocus={(event) => {
            returnTo.current = document.activeElement;
            // The first field that takes the focus, or the text that is to be read, not the button that closes the dialog.
            for (const field of (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("input:not([type=file]), textarea, select, [data-takes-focus]")) {
              field.focus();
              if (document.activeElement === field) return event.preventDefault();
            }
          }}
          onCloseAutoFocus={(event) => {
            if (!(returnTo.current instanceof HTMLElement) || !returnTo.current.isConnected) return;
            event.preventDefault();
            returnTo.current.focus();
          }}
          className={cx("scroll fixed top-1/2 left-1/2 z-50 max-h-[92dvh] base:w-[min(560px,calc(100vw-24px))] -translate-x-1/2 -translate-y-1/2 rounded-lg border border-line bg-surface p-6 shadow-high", className)}
        >
          <div className="mb-4 flex items-start gap-4">
            <div className="min-w-0 flex-1">
              <RadixDialog.Title dir="auto" className="text-lg font-semibold">{title}</RadixDialog.Title>
              {description && <p dir="auto" className="text-sm text-ink-2">{description}</p>}
            </div>
            <RadixDialog.Close asChild>
              <Button variant="ghost" size="icon" aria-label="Close" className="-mt-1 -mr-2">
                <X className="size-4" />
              </Button>
            </RadixDialog.Close>
          </div>
          {children}
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

/** A modal panel that slides in from one side: the sidebar and the details on narrow screens. */
export function Sheet({ open, onOpenChange, side, title, children, className }: SheetProps) {
  return (
    <RadixDialog.Root open={open} onOpenChange={onOpenChange}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <RadixDialog.Content
          aria-describedby={undefined}
          // Focus the panel itself. Radix would focus the first button, and on touch screens that opens the button's tooltip over the panel.
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            (event.currentTarget as HTMLElement).focus();
          }}
          className={cx("fixed inset-y-0 z-50 flex base:w-[min(340px,88vw)] flex-col base:bg-rail shadow-high", side === "left" ? "left-0" : "right-0", className)}
        >
          <RadixDialog.Title dir="auto" className="sr-only">{title}</RadixDialog.Title>
          {children}
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

/** A menu that is open at first: it is loaded when the person opens it. It is part of the content, and hides the rest of the page from nobody. */
export function Menu({ trigger, isOpenedByKey, children }: { trigger: ReactNode; isOpenedByKey: boolean; children: ReactNode }) {
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpenedByKey) return;
    // The library focuses the first entry if a key opens the menu, but was not there yet to notice this key.
    const frame = requestAnimationFrame(() => content.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus());
    return () => cancelAnimationFrame(frame);
  }, []); // eslint-disable-line
  return (
    <DropdownMenu.Root defaultOpen modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={document.getElementById("main")}>
        <DropdownMenu.Content ref={content} align="end" sideOffset={6} className="scroll z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-[190px] rounded-md border border-line bg-surface p-1 shadow-high animate-pop">
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

export function MenuItem({ className, ...rest }: ComponentProps<typeof DropdownMenu.Item>) {
  return (
    <DropdownMenu.Item
      className={cx("flex h-8 cursor-pointer items-center gap-2.5 rounded-sm px-2.5 text-sm outline-offset-[-2px] data-[disabled]:opacity-50 data-[highlighted]:bg-hover pointer-coarse:h-11 [&_svg]:size-4 [&_svg]:text-ink-3", className)}
      {...rest}
    />
  );
}

export const MenuSeparator = () => <DropdownMenu.Separator className="my-1 h-px bg-line" />;

/** The `onKeyDown` of every dialog: Ctrl+Enter (⌘+Enter) does what its main button does. A form is submitted as its button would do it, with the browser's own checks; a disabled main button stays without effect. */
function submitOnCtrlEnter(event: KeyboardEvent<HTMLElement>): void {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented || isComposing(event.nativeEvent)) return;
  // A dialog that was opened from this one is its child for React only: the key belongs to the inner one.
  if (!event.currentTarget.contains(event.target as Node)) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLButtonElement>("button[type=submit], button[data-variant=primary]")];
  const main = buttons.findLast((button) => button.type === "submit") ?? buttons.at(-1);
  if (!main) return;
  event.preventDefault();
  event.stopPropagation();
  main.click();
}
