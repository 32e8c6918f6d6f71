/** SetUpLink: leads to the form for a key or a local model. What was typed beside the link is kept as a draft. */
import { Link } from "@tanstack/react-router";
import { cx } from "@/lib/cx";

/** `team`: the team that may use the new model instead of the demo. */
export const SetUpLink = ({ team, className }: { team?: string; className?: string }) => (
  <Link to="/models" search={{ setup: true, team }} className={cx("inline-flex min-h-6 items-center self-start underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11", className)}>
    Set up a model
  </Link>
);
