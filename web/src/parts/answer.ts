/** Answer: the person's answer to a question or an approval, from a card or from the composer. */
import { useState } from "react";
import { ApiError, api, errorMessage, unwrap } from "@/api/client";
import { loadChunk } from "@/live/chunks";
import { queryClient, queryKeys } from "@/api/queries";

interface AnswerState {
  isSending: boolean;
  problem: string;
  /** Resolve to a sentence if the server did not take the answer, and to null otherwise. */
  answer: (given: { text: string } | { decision: "approve" | "deny"; note?: string; always?: boolean }) => Promise<string | null>;
}

/** Send the person's answer to a question or an approval. The server accepts the first answer only. */
export function useAnswer(id: string): AnswerState {
  const [isSending, setIsSending] = useState(false);
  const [problem, setProblem] = useState("");
  const answer: AnswerState["answer"] = async (given) => {
    setIsSending(true);
    setProblem("");
    const body = "text" in given ? { text: given.text, note: "", always: false } : { text: "", decision: given.decision, note: given.note ?? "", always: given.always ?? false };
    try {
      // A question is answered once, so a request whose response was lost can be sent again without an idempotency key.
      await unwrap(api.POST("/api/inbox/{item}/answer", { params: { path: { item: id } }, body }));
      return null;
    } catch (error) {
      const isLate = error instanceof ApiError && error.status === 409;
      const why = isLate ? "This question is already answered. The first answer counts." : errorMessage(error);
      setProblem(why);
      return why;
    } finally {
      setIsSending(false);
      void loadChunk(() => import("@/live/deltas")).then(({ refreshItems }) => refreshItems([id]));
      void queryClient.invalidateQueries({ queryKey: queryKeys.digest });
      void queryClient.invalidateQueries({ queryKey: ["conversation"] });
    }
  };
  return { isSending, problem, answer };
}
