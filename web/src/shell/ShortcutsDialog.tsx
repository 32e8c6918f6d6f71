/** ShortcutsDialog: the list of keyboard shortcuts. `Shortcuts.tsx` handles the keys. */
import { Fragment } from "react";
import { Dialog, Kbd } from "@/ui";
import { useShell } from "@/parts/shellState";
import { SCREENS } from "@/views";

const MODIFIER_KEY = globalThis.navigator?.platform.startsWith("Mac") ? "⌘" : "Ctrl";

const listShortcuts = (): [string, string][] => [
  [`${MODIFIER_KEY} K`, "Jump to anything"],
  ["g i", "Inbox"],
  ["g c", "The team's coordinator"],
  ...SCREENS.filter((screen) => screen.key).map((screen): [string, string] => [`g ${screen.key}`, screen.label]),
  ["a", "Next question that waits for you"],
  ["1 – 9", "Choose an option of the marked question; Enter approves or denies"],
  ["r", "Write a message"],
  ["↑", "Edit your last message, in the empty text box; Esc leaves it as it is"],
  ["Esc", "Leave the text box; go to the end of the conversation"],
  ["Alt ↑ / Alt ↓", "Previous or next member"],
  ["j / k", "Next or previous inbox item"],
  ["x / e", "Select an inbox item; archive it"],
  ["Alt T", "Go to a notice, such as one with Undo"],
  ["/", "Search in the conversation"],
  ["v", "Conversation, or every step of the work"],
  ["[ / ]", "Sidebar, details"],
  ["n", "New team"],
  ["?", "List the keyboard shortcuts"],
];

export default function ShortcutsDialog() {
  const setOpen = useShell((state) => state.setOpen);
  return (
    <Dialog open onOpenChange={(isOpen) => setOpen("shortcutsDialog", isOpen)} title="Keyboard shortcuts" description="Single keys work outside text fields, while no message is begun. You can turn them off in the settings.">
      <dl className="grid grid-cols-[120px_1fr] gap-y-2 text-sm">
        {listShortcuts().map(([keys, description]) => (
          <Fragment key={keys}>
            <dt className="flex gap-1">
              {keys.split(" ").map((key, index) => (key === "/" && keys.length > 1) || key === "–" ? <span key={index} className="text-ink-3">{key}</span> : <Kbd key={index}>{key}</Kbd>)}
            </dt>
            <dd dir="auto">{description}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
