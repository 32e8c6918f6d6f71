/** Budget: what the goal has used of its limits, and a form that changes them at any time. */
import { Link } from "@tanstack/react-router";
import BudgetForm from "@/views/settings/BudgetForm";
import { LimitUses } from "@/views/settings/LimitUses";
import { Section } from "@/views/settings/Section";
import type { TeamSettings } from "@/views/settings/settingsQuery";
import { screenHref } from "@/lib/screens";

export function Budget({ settings: { team, budget } }: { settings: TeamSettings }) {
  return (
    <Section
      id="budget"
      title="Budget"
      about={
        <>
          The limits of the goal, with everything that was delegated for it, its cycles and its triggers. Tasks from your messages have limits of their own: 100 turns each, and the daily limit of all teams. You can raise them at any time, or lower them to what is used.{" "}
          <Link to={screenHref(team.id, "cost") as "/"} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink">
            What it was spent on
          </Link>
        </>
      }
    >
      {budget ? (
        <>
          <LimitUses budget={budget} />
          <BudgetForm team={team.id} budget={budget} />
        </>
      ) : (
        <p className="text-ink-2">The team has no goal yet. Its budget is given with the goal.</p>
      )}
    </Section>
  );
}
