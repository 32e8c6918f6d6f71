/** MessageKeys: the keys that belong to the message that is being written, and are no shortcuts. */

/** Whether a character was typed in the composer, or while it holds an unsent message. `r` leads back to that message. */
export function isForMessage({ key, target }: KeyboardEvent): boolean {
  const composer = document.querySelector("[data-composer]");
  if (!composer || key.length > 1) return false;
  return composer.contains(target as Node | null) || (composer.hasAttribute("data-draft") && key !== "r");
}
