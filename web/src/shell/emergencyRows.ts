/** Emergency rows: what the palette offers to stop all work, and what it offers while all work is stopped. */
import type { PaletteEntry } from "@/shell/paletteRows";

interface EmergencyRow extends PaletteEntry {
  does: "stop" | "resume" | "look";
  detail?: string;
}

/**
 * Return the rows. A person who wants to stop all work must never resume it: "stop" and "pause" do not find the row that
 * resumes, and "emergency" finds it second.
 */
export function emergencyRows(isStopped: boolean): EmergencyRow[] {
  if (!isStopped) return [{ id: "stop all", does: "stop", label: "Stop all work", keywords: ["emergency stop", "pause"], detail: "of all teams" }];
  return [
    { id: "all stopped", does: "look", label: "All work is stopped already", keywords: ["emergency stop", "pause"], detail: "See Operations" },
    { id: "resume all", does: "resume", label: "Resume all work", keywords: ["continue", "emergency"] },
  ];
}
