/** useSearchParams: the query parameters of the current URL, and a setter that keeps the other parameters. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

type SearchParams = Record<string, string | undefined>;

export function useSearchParams(): [SearchParams, (change: SearchParams, replace?: boolean) => void] {
  const raw = useSearch({ strict: false }) as Record<string, unknown>;
  const navigate = useNavigate();
  const setParams = useCallback(
    (change: SearchParams, replace = false) =>
      void navigate({ to: ".", replace, search: ((current: SearchParams) => ({ ...current, ...change })) as never }),
    [navigate],
  );
  const params = Object.fromEntries(Object.entries(raw).map(([key, value]) => [key, value === undefined ? undefined : String(value)]));
  return [params, setParams];
}
