/** Grants: what the person has allowed a team for longer than one call, with a way to take it back. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";
import { Literal, LongText } from "@/conversation/Literal";
import { capitalize, plural, shortTime } from "@/lib/format";
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
    <section aria-label="Allowed without asking">
      <h3>Allowed without asking</h3>
      <ul className="divide-y divide-line font-normal">
        {inForce.map((grant) => (
          <li key={grant.id} className="flex items-center gap-3 py-2">
            <div className="min-w-0 flex-1 text-sm">
              <div id={`grant-${grant.id}`}>
                <Allowed grant={grant} />
              </div>
              <span className="block text-xs text-ink-3">
                {grant.team_id ? "This team" : "All teams"}, since {shortTime(grant.created_at)}, {grant.used === 0 ? "never used" : `used ${plural(grant.used, "time")}`}
                {grant.until && `, until ${shortTime(grant.until)}`}
              </span>
            </div>
            <Button size="sm" disabled={revoke.isPending} aria-describedby={`grant-${grant.id}`} onClick={() => revoke.mutate(grant.id)}>
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

/** A pattern longer than this stands below the words of its grant. */
const INLINE_CHARACTERS = 80;

/** What a grant allows. A grant for one exact call is named by the request that it came from: its pattern is a hash. */
function Allowed({ grant }: { grant: Schemas["GrantView"] }) {
  if (grant.pattern.length > INLINE_CHARACTERS && grant.kind !== "call")
    return (
      <>
        {capitalize(GRANT_TEXT[grant.kind])}
        <LongText text={grant.pattern} label="What it names" isCode />
      </>
    );
  if (grant.kind !== "call")
    return (
      <>
        {capitalize(GRANT_TEXT[grant.kind])}{" "}
        <code dir="ltr" className="literal text-xs">
          <Literal text={grant.pattern} />
        </code>
      </>
    );
  return (
    <>
      {grant.uses_left === null ? "Make one exact call any number of times" : "Make one exact call once"}
      {grant.from_ask && (
        <>
          {": "}
          <Link to="/inbox/$item" params={{ item: grant.from_ask }} className="underline">
            the request
          </Link>
        </>
      )}
    </>
  );
}
