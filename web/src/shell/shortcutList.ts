/** The list of keyboard shortcuts that the dialog shows. `Shortcuts.tsx` handles the keys. */
import { SCREENS } from "@/views";

const MODIFIER_KEY = globalThis.navigator?.platform.startsWith("Mac") ? "⌘" : "Ctrl";

export const listShortcuts = (): [string, string][] => [
  [`${MODIFIER_KEY} K`, "Jump to anything"],
  ["g i", "Inbox"],
  ["g c", "The team's coordinator"],
  ...SCREENS.filter((screen) => screen.key).map((screen): [string, string] => [`g ${screen.key}`, screen.label]),
  ["a", "Next question that waits for you"],
  ["1 – 9", "Choose an option of the question on screen"],
  ["r", "Write a message"],
  ["Esc", "Leave the text box; go to the end of the conversation"],
  ["Alt ↑ / Alt ↓", "Previous or next member"],
  ["j / k", "Next or previous inbox item"],
  ["x / e", "Select an inbox item; archive it"],
  ["Alt T", "Go to a notice, such as one with Undo"],
  ["/", "Search in the conversation"],
  ["v", "Conversation, or every step of the work"],
  ["[ / ]", "Sidebar, details"],
  ["c", "New team"],
  ["?", "List the keyboard shortcuts"],
];
