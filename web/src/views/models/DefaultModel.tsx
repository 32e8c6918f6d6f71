/** DefaultModel: which model answers by default, beside the field for the first team. A demo that answers has a notice of its own. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { modelsQuery } from "@/views/models/modelsQuery";

export function DefaultModel() {
  const { data } = useQuery(modelsQuery);
  if (!data || data.default === "demo") return null;
  return (
    <p className="text-center text-sm text-ink-2">
      <span className="font-medium text-ink">{data.default}</span> answers by default.{" "}
      <Link to="/models" className="inline-flex min-h-6 items-center underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-10">
        All models
      </Link>
    </p>
  );
}
