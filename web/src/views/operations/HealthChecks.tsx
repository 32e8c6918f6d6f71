/** HealthChecks: the findings of `agiraph doctor`, made on demand, problems first. */
import { useMutation } from "@tanstack/react-query";
import { Check, CircleAlert, Info, Stethoscope } from "lucide-react";
import { useEffect } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { cx } from "@/lib/cx";
import { capitalize, clockTimeWithSeconds, plural } from "@/lib/format";
import { Advice } from "@/views/models/NoticeText";
import { Problem, Section } from "@/views/operations/parts";
import { Button, Loading } from "@/ui";

type Finding = Schemas["FindingView"];
const VERDICTS: Record<Finding["verdict"], { icon: typeof Check; colour: string; label: string; order: number }> = {
  problem: { icon: CircleAlert, colour: "text-fail", label: "Problem", order: 0 },
  note: { icon: Info, colour: "text-wait", label: "Note", order: 1 },
  fine: { icon: Check, colour: "text-done", label: "OK", order: 2 },
};

export default function HealthChecks() {
  const checks = useMutation({ mutationFn: () => unwrap(api.POST("/api/operations/doctor")) });
  const { mutate } = checks;
  useEffect(() => mutate(), [mutate]);
  const findings = (checks.data?.findings ?? []).toSorted((a, b) => VERDICTS[a.verdict].order - VERDICTS[b.verdict].order);
  const problems = findings.filter((one) => one.verdict === "problem").length;
  return (
    <Section
      title="Health checks"
      description={checks.data && !checks.isPending ? `${problems === 0 ? "No problem" : plural(problems, "problem")} in ${plural(findings.length, "check")}, at ${clockTimeWithSeconds(checks.data.at)}.` : "The same checks as `agiraph doctor`. They read the home and the database, and take up to 30 seconds."}
      action={
        <Button disabled={checks.isPending} onClick={() => mutate()}>
          <Stethoscope className="size-4" aria-hidden /> Check again
        </Button>
      }
    >
      {checks.isPending && <Loading label="Checking the home, the database and the models" />}
      <Problem error={checks.error} />
      {!checks.isPending && (
        <ul className="divide-y divide-line">
          {findings.map((finding, at) => (
            <FindingItem key={at} finding={finding} />
          ))}
        </ul>
      )}
      {findings.some((one) => one.can_fix && one.verdict === "problem") && (
        <p className="border-t border-line px-4 py-3 text-sm text-ink-2">
          Stop the server and run <code>agiraph doctor --fix</code>: it repairs what is safe to repair.
        </p>
      )}
    </Section>
  );
}

function FindingItem({ finding }: { finding: Finding }) {
  const { icon: Icon, colour, label } = VERDICTS[finding.verdict];
  return (
    <li className="flex gap-3 px-4 py-2.5 text-sm">
      <Icon className={cx("mt-0.5 size-4 shrink-0", colour)} aria-label={label} role="img" />
      <div className="min-w-0 flex-1 sm:flex sm:flex-wrap sm:gap-x-3">
        <h3 className="w-40 shrink-0 font-medium break-words" dir="auto">
          {capitalize(finding.name)}
        </h3>
        <p className="min-w-0 flex-1 basis-60 break-words" dir="auto">
          <Advice text={finding.what} />
        </p>
        {finding.details.length > 0 && (
          <ul className="mt-1 ml-4 basis-full list-disc text-xs text-ink-2 sm:ml-[188px]">
            {finding.details.map((line) => (
              <li key={line} dir="auto" className="break-words">
                <Advice text={line} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}
