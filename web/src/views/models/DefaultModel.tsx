/** DefaultModel: which model answers by default, and what to do if it cannot. Without a model, the person sets one up here. Shown on the welcome page. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { modelsQuery } from "@/views/models/modelsQuery";
import { noticeOf } from "@/views/models/notice";
import { Loading } from "@/ui";

const SetUpModel = lazyChunk(() => import("@/views/models/SetUpModel"));

export default function DefaultModel() {
  const { data } = useQuery(modelsQuery);
  // The result of the setup stays on the page after the new model has become the default.
  const [isSettingUp, setIsSettingUp] = useState(false);
  if (!data) return null;
  if (data.default === "demo" && !isSettingUp) setIsSettingUp(true);
  if (isSettingUp)
    return (
      <div>
        <Suspense fallback={<Loading label="Opening the setup" />}>
          <SetUpModel isWelcome />
        </Suspense>
      </div>
    );
  const notice = noticeOf(data, "");
  return (
    <div className="mx-auto max-w-[52ch] rounded-md border border-line bg-surface px-4 py-3 text-left text-sm">
      <p>
        <span className="font-medium">{data.default}</span> answers by default.
      </p>
      {notice && <p dir="auto" className={notice.tone === "fail" ? "mt-1 text-fail" : "mt-1 text-wait"}>{notice.text}</p>}
      <Link to="/models" className="mt-1 inline-flex min-h-6 items-center underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-10">
        All models
      </Link>
    </div>
  );
}
