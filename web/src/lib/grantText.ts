/** Grant text: what each kind of grant allows, as the beginning of a phrase that its pattern ends. */
import type { components } from "@/api/types";

export const GRANT_TEXT: Record<components["schemas"]["GrantView"]["kind"], string> = {
  read: "open any address of",
  reach: "let commands talk to",
  packages: "install the package",
  tool: "call the tool",
  command: "run exactly",
  trust: "treat as its own the text of",
  call: "make one exact call",
};
