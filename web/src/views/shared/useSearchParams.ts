/** Place: what stands after the question mark of an address, and how to change it. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

type Search = Record<string, string | undefined>;

export function usePlace(): [Search, (change: Search, replace?: boolean) => void] {
  const found = useSearch({ strict: false }) as Record<string, unknown>;
  const navigate = useNavigate();
  const go = useCallback(
    (change: Search, replace = false) =>
      void navigate({ to: ".", replace, search: ((now: Search) => ({ ...now, ...change })) as never }),
    [navigate],
  );
  const search = Object.fromEntries(Object.entries(found).map(([key, value]) => [key, value === undefined ? undefined : String(value)]));
  return [search, go];
}
