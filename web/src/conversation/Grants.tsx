/** Grants: what the person has allowed a team for longer than one call, with a way to take it back. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, errorMessage, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { shortTime } from "@/lib/format";
import { GRANT_TEXT } from "@/lib/grantText";
import { Button } from "@/ui";

export function Grants({ team }: { team: string }) {
  const grants = useQuery({ queryKey: queryKeys.grants(team), queryFn: () => unwrap(api.GET("/api/teams/{team}/grants", { params: { path: { team } } })) });
  const revoke = useMutation({
    mutationFn: (grant: string) => unwrap(api.DELETE("/api/teams/{team}/grants/{grant}", { params: { path: { team, grant } } })),
    onSettled: () => queryClient.invalidateQueries({ queryKey: queryKeys.grants(team) }),
  });
  const inForce = grants.data?.filter((grant) => grant.is_in_force) ?? [];
  const problem = grants.error ?? revoke.error;
  if (inForce.length === 0 && !problem) return null;
  return (
    <section aria-label="Allowed for good">
      <h3 className="mb-1">Allowed without asking</h3>
      <ul className="divide-y divide-line font-normal">
        {inForce.map((grant) => (
          <li key={grant.id} className="flex items-center gap-3 py-2">
            <span className="min-w-0 flex-1 text-sm">
              {GRANT_TEXT[grant.kind]} <code className="break-all">{grant.pattern}</code>
              <span className="block text-xs text-ink-3">
                {grant.team_id ? "This team" : "All teams"}, since {shortTime(grant.created_at)}, used {grant.used} {grant.used === 1 ? "time" : "times"}
                {grant.until && `, until ${shortTime(grant.until)}`}
              </span>
            </span>
            <Button size="sm" disabled={revoke.isPending} onClick={() => revoke.mutate(grant.id)}>
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      {problem && (
        <p role="alert" className="text-xs font-normal text-fail">
          {errorMessage(problem)}
        </p>
      )}
    </section>
  );
}
