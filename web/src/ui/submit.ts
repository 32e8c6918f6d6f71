/** Submit: Ctrl+Enter (⌘+Enter) anywhere in a dialog does what its main button does. */
import type { KeyboardEvent } from "react";
import { isComposing } from "@/lib/composing";

/** The `onKeyDown` of every dialog. A form is submitted as its button would do it, with the browser's own checks; a disabled main button stays without effect. */
export function submitOnCtrlEnter(event: KeyboardEvent<HTMLElement>): void {
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
