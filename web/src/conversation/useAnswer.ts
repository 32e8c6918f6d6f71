/** Answer: the person's word on a question or an approval; the first one stands. */
import { useState } from "react";
import { ApiError, api, explain, unwrap } from "@/api/client";
import { keys, queryClient } from "@/api/queries";

export interface Answering {
  isSending: boolean;
  trouble: string;
  answer: (what: { text: string } | { decision: "approve" | "deny"; note?: string }) => Promise<boolean>;
}

export function useAnswer(id: string): Answering {
  const [isSending, setIsSending] = useState(false);
  const [trouble, setTrouble] = useState("");
  const answer: Answering["answer"] = async (what) => {
    setIsSending(true);
    setTrouble("");
    const body = "text" in what ? { text: what.text, note: "" } : { text: "", decision: what.decision, note: what.note ?? "" };
    try {
      // One question is answered once, so its own name makes a lost answer safe to send again.
      await unwrap(api.POST("/api/inbox/{item}/answer", { params: { path: { item: id } }, body }));
      return true;
    } catch (error) {
      const isLate = error instanceof ApiError && error.status === 409;
      setTrouble(isLate ? "This question is already answered. The first answer counts." : explain(error));
      return false;
    } finally {
      setIsSending(false);
      void queryClient.invalidateQueries({ queryKey: keys.inbox });
      void queryClient.invalidateQueries({ queryKey: ["conversation"] });
    }
  };
  return { isSending, trouble, answer };
}
