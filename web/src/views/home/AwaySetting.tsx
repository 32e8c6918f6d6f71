/** AwaySetting: the person says until when they are away. Channels are silent meanwhile, and questions wait. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "@/api/client";
import { meQuery, queryClient, queryKeys } from "@/api/queries";
import { fullTime } from "@/lib/format";
import { Button, Input, Problem } from "@/ui";

export function AwaySetting() {
  const me = useQuery(meQuery);
  const [until, setUntil] = useState("");
  const change = useMutation({
    mutationFn: (away_until: string | null) => unwrap(api.PATCH("/api/persons/me", { body: { away_until } })),
    onSuccess: (changed) => queryClient.setQueryData(queryKeys.me, changed),
  });
  const problem = me.error ?? change.error;
  const awayUntil = me.data?.away_until;
  return (
    <div className="flex flex-wrap items-center gap-2">
      {awayUntil ? (
        <>
          <span className="text-sm">Away until {fullTime(awayUntil)}</span>
          <Button size="sm" disabled={change.isPending} onClick={() => change.mutate(null)}>
            I am back
          </Button>
        </>
      ) : (
        <>
          <Input type="datetime-local" aria-label="Away until" value={until} onChange={(event) => setUntil(event.target.value)} className="w-auto" />
          <Button size="sm" disabled={change.isPending || !until} onClick={() => change.mutate(new Date(until).toISOString())}>
            I am away
          </Button>
        </>
      )}
      <Problem of={problem} className="basis-full text-xs" />
    </div>
  );
}
