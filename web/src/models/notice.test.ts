import { describe, expect, it } from "vitest";
import { type Model, type Models, noticeOf, usableNames } from "@/models/notice";

const model = (name: string, more: Partial<Model> = {}): Model => ({
  name, is_default: false, window: { value: 200_000, origin: "package" }, output_limit: null, tools: null, images: null, pdf: null, thinking: null, input_usd: null, output_usd: null, retires: "", use_instead: "", ...more,
});
const MODELS: Models = {
  default: "anthropic/good",
  default_problem: "",
  providers: [
    { name: "anthropic", address: "https://api.anthropic.com", is_local: false, state: "ready", advice: "", models: [model("anthropic/good"), model("anthropic/old", { retires: "2027-01-01", use_instead: "anthropic/good" })] },
    { name: "ollama", address: "http://localhost:11434", is_local: true, state: "ready", advice: "", models: [model("ollama/small", { window: { value: 4096, origin: "server" } }), model("ollama/mute", { tools: { value: false, origin: "server" } })] },
    { name: "local", address: "http://localhost:1", is_local: true, state: "down", advice: "Start the server at http://localhost:1.", models: [] },
    { name: "openai", address: "https://api.openai.com", is_local: false, state: "no_key", advice: "Set OPENAI_API_KEY.", models: [model("openai/x")] },
  ],
};

describe("the notice about a model", () => {
  const text = (name: string, models = MODELS) => noticeOf(models, name)?.text;

  it("is empty for a model that is ready", () => {
    expect([noticeOf(MODELS, ""), noticeOf(MODELS, "anthropic/good"), noticeOf(undefined, "x")]).toEqual([null, null, null]);
  });

  it("says what to do about a missing key, a server that is down, and a name that nobody knows", () => {
    expect(text("openai/x")).toBe("Set OPENAI_API_KEY.");
    expect(text("local/y")).toBe("Start the server at http://localhost:1.");
    expect(text("claude")).toBe("Nobody here offers “claude”. Write provider/model, such as anthropic/good.");
    expect(text("ollama/other")).toBe("The server at http://localhost:11434 does not have ollama/other. It has ollama/small, ollama/mute.");
  });

  it("says what to do about a model without tools, a small window and a model that retires", () => {
    expect(text("ollama/mute")).toContain("Write text/ollama/mute");
    expect(text("text/ollama/mute")).toBeUndefined();
    expect(text("ollama/small")).toContain("reads only 4,096 tokens at a time");
    expect(text("anthropic/good, anthropic/old")).toBe("anthropic/old is shut down on 2027-01-01. Use anthropic/good instead.");
  });

  it("says why the default model cannot be used", () => {
    expect(noticeOf({ ...MODELS, default_problem: "Set a key." }, " ")).toEqual({ tone: "fail", text: "Set a key." });
    expect(text("", { ...MODELS, default: "demo" })).toContain("A scripted demo answers");
  });

  it("offers only models that can be used now", () => {
    expect(usableNames(MODELS)).toEqual(["anthropic/good", "anthropic/old", "ollama/small", "ollama/mute"]);
  });
});
