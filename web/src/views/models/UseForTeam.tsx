/** UseForTeam: offers a model to a team that the demo answers for. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, errorMessage, unwrap } from "@/api/client";
import { agentsQuery, queryClient, queryKeys, teamQuery } from "@/api/queries";
import { cx } from "@/lib/cx";
import { Button } from "@/ui";

export function UseForTeam({ team: id, model, className }: { team: string; model: string; className?: string }) {
  const team = useQuery(teamQuery(id)).data;
  const agents = useQuery(agentsQuery(id)).data;
  const use = useMutation({
    mutationFn: (model: string) => unwrap(api.PATCH("/api/teams/{team}", { params: { path: { team: id } }, body: { model } })),
    onSuccess: () => Promise.all([queryKeys.team(id), queryKeys.agents(id)].map((queryKey) => queryClient.invalidateQueries({ queryKey }))),
  });
  const isDemo = agents?.find((agent) => agent.id === team?.coordinator_id)?.model === "demo";
  if (!team || (!isDemo && !use.isSuccess)) return null;
  return (
    <div role="status" className={cx("flex flex-wrap items-center gap-x-3 gap-y-1 text-sm", className)}>
      {use.isSuccess ? (
        <>
          <span dir="auto">“{team.name}” uses {use.variables} from its next step on.</span>
          <Link to="/t/$team" params={{ team: id }} className="underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11 pointer-coarse:leading-[44px]">
            Go to the team
          </Link>
        </>
      ) : (
        <>
          <span dir="auto" className="text-ink-2">The scripted demo answers in “{team.name}”.</span>
          <Button size="sm" disabled={use.isPending} onClick={() => use.mutate(model)}>
            Use {model} there
          </Button>
        </>
      )}
      {use.error && (
        <span role="alert" className="text-fail">
          {errorMessage(use.error)}
        </span>
      )}
    </div>
  );
}
