/** SetUpLink: leads to the form for a key or a local model. A dialog that contains the link is closed; what was typed in it is kept as a draft. */
import { Link } from "@tanstack/react-router";
import type { MouseEvent } from "react";
import { cx } from "@/lib/cx";
import { useShell } from "@/parts/shellState";

/** Close the dialog for a new team, unless the page opens in another tab. */
function closeDialog({ ctrlKey, metaKey, shiftKey }: MouseEvent): void {
  if (!ctrlKey && !metaKey && !shiftKey) useShell.getState().update({ newTeam: false, startsDemo: false, copies: "" });
}

/** `team`: the team that may use the new model instead of the demo. */
export const SetUpLink = ({ team, className }: { team?: string; className?: string }) => (
  <Link to="/models" search={{ setup: true, team }} onClick={closeDialog} className={cx("inline-flex min-h-6 items-center self-start underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11", className)}>
    Set up a model
  </Link>
);
