/** DefaultModel: which model answers by default, and what to do if it cannot. Shown on the welcome page. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { modelsQuery } from "@/models/modelsQuery";
import { noticeOf, usableNames } from "@/models/notice";

export default function DefaultModel() {
  const { data } = useQuery(modelsQuery);
  if (!data) return null;
  const notice = noticeOf(data, "");
  const found = data.default === "demo" ? usableNames(data).slice(0, 3) : [];
  return (
    <div className="mx-auto mt-4 max-w-[52ch] rounded-md border border-line bg-surface px-4 py-3 text-left text-sm">
      {data.default === "demo" ? (
        <p>
          <span className="font-medium">No model is set up yet.</span>{" "}
          {found.length > 0 ? `Found on this machine: ${found.join(", ")}. Choose one when you create a team.` : "A scripted demo answers, so you can look around first. For an AI, set a key such as ANTHROPIC_API_KEY, or start Ollama, LM Studio, llama.cpp or vLLM on this machine, and start agiraph again."}
        </p>
      ) : (
        <p>
          <span className="font-medium">{data.default}</span> answers by default.
        </p>
      )}
      {notice && data.default !== "demo" && <p dir="auto" className={notice.tone === "fail" ? "mt-1 text-fail" : "mt-1 text-wait"}>{notice.text}</p>}
      <Link to="/models" className="mt-1 inline-flex min-h-6 items-center underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-10">
        All models
      </Link>
    </div>
  );
}
