/** Time zone: tells the server once in which zone the person lives, as the browser knows it. */
import { api, unwrap } from "@/api/client";
import { queryClient, queryKeys } from "@/api/queries";

/** Send the browser's time zone unless the server knows one: what the person said themselves stays. */
export async function tellTimeZone(): Promise<void> {
  const { timeZone: zone } = Intl.DateTimeFormat().resolvedOptions();
  const me = await unwrap(api.GET("/api/persons/me"));
  if (!zone || me.zone) return;
  queryClient.setQueryData(queryKeys.me, await unwrap(api.PATCH("/api/persons/me", { body: { zone } })));
}
