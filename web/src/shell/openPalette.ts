/** OpenPalette: open the command palette, and keep what is typed until it appears. */
import { lazyChunk } from "@/live/chunks";
import { PALETTE_FIELD, useShell } from "@/parts/shellState";

export const CommandPalette = lazyChunk(() => import("@/shell/CommandPalette"));

/** How long keys are kept for a palette that is not there yet. After that, they go where the person types. */
const KEEP_MS = 1_000;
let opened: { at: number; focus: Element | null } = { at: 0, focus: null };

/** Open the palette, or select the text in it if it is open. While the server is away and the palette was never loaded, it stays closed; the banner says so. */
export function openPalette(): void {
  const { palette, setOpen, update } = useShell.getState();
  const field = document.getElementById(PALETTE_FIELD);
  if (palette && field instanceof HTMLInputElement) return field.select();
  if (palette) return;
  update({ paletteText: "", isPaletteMissing: !CommandPalette.canLoad() });
  if (!CommandPalette.canLoad()) return;
  opened = { at: Date.now(), focus: document.activeElement };
  setOpen("palette", true);
}

/** Whether the target of a key is a text field. */
export const isField = (target: EventTarget | null): boolean => target instanceof HTMLElement && target.closest("input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable=true]") !== null;
/** Whether a dialog or menu is open. */
export const isModal = (): boolean => document.querySelector("[role=dialog], [role=menu]") !== null;

/** Keep what is typed between the shortcut of the palette and its appearance: without this, the keys would go to the page. */
export function keepForPalette(event: KeyboardEvent): void {
  const { palette, paletteText, setOpen, update } = useShell.getState();
  if (!palette || isModal() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape") setOpen("palette", false);
  const isElsewhere = isField(event.target) && event.target !== opened.focus;
  if (isElsewhere || Date.now() - opened.at > KEEP_MS) return;
  if (event.key.length === 1) update({ paletteText: paletteText + event.key });
  else if (event.key === "Backspace") update({ paletteText: paletteText.slice(0, -1) });
  else if (event.key !== "Enter" && event.key !== "Escape") return;
  event.preventDefault();
  event.stopPropagation();
}

/** Whether a character was typed in the composer, or while it holds an unsent message. `r` leads back to that message. */
export function isForMessage({ key, target }: KeyboardEvent): boolean {
  const composer = document.querySelector("[data-composer]");
  if (!composer || key.length > 1) return false;
  return composer.contains(target as Node | null) || (composer.hasAttribute("data-draft") && key !== "r");
}
