import { describe, expect, it } from "vitest";
import { type Model, type Models, type ModelTest, failedChecks, noticeOf, usableNames, withTest } from "@/views/models/notice";

const model = (name: string, more: Partial<Model> = {}): Model => ({
  name, is_default: false, window: { value: 200_000, origin: "package" }, output_limit: null, tools: null, images: null, pdf: null, thinking: null, search: null, input_usd: null, output_usd: null, retires: "", use_instead: "", advice: "", last_test: null, ...more,
});
const MODELS: Models = {
  default: "anthropic/good",
  default_problem: "",
  providers: [
    { name: "anthropic", address: "https://api.anthropic.com", is_local: false, takes_key: false, has_stored_key: false, state: "ready", advice: "", models: [model("anthropic/good"), model("anthropic/old", { retires: "2027-01-01", use_instead: "anthropic/good" })] },
    { name: "ollama", address: "http://localhost:11434", is_local: true, takes_key: false, has_stored_key: false, state: "ready", advice: "", models: [model("ollama/small", { window: { value: 4096, origin: "server" }, advice: "Its window of 4,096 tokens is small for an agent's work." }), model("ollama/mute", { tools: { value: false, origin: "server" } })] },
    { name: "local", address: "http://localhost:1", is_local: true, takes_key: false, has_stored_key: false, state: "down", advice: "Start the server at http://localhost:1.", models: [] },
    { name: "openai", address: "https://api.openai.com", is_local: false, takes_key: false, has_stored_key: false, state: "no_key", advice: "Set OPENAI_API_KEY.", models: [model("openai/x")] },
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
    expect(text("claude")).toBe("No provider offers “claude”. Write provider/model, such as anthropic/good.");
    expect(text("ollama/other")).toBe("Check the model's name, or load it with `ollama pull other`. It has: ollama/small, ollama/mute.");
  });

  it("says what to do about a model without tools, a small window and a model that retires", () => {
    expect(text("ollama/mute")).toContain("Use it as text/ollama/mute, where calls are written as text");
    expect(text("text/ollama/mute")).toBeUndefined();
    expect(text("ollama/small")).toBe("Its window of 4,096 tokens is small for an agent's work.");
    expect(text("anthropic/good, anthropic/old")).toBe("anthropic/old is shut down on 2027-01-01. Use anthropic/good instead.");
  });

  it("says why the default model cannot be used", () => {
    expect(noticeOf({ ...MODELS, default_problem: "Set a key." }, " ")).toEqual({ tone: "fail", text: "Set a key." });
    expect(noticeOf({ ...MODELS, default: "demo" }, "")).toMatchObject({ tone: "wait", text: expect.stringContaining("No model is set up") });
    expect(noticeOf({ ...MODELS, default: "demo" }, "demo")).toEqual({ tone: "plain", text: "A scripted demo answers, not an AI. It costs nothing." });
  });

  it("keeps a new test with its model", () => {
    const test: ModelTest = {
      model: "ollama/small",
      at: "2026-01-01T10:00:00Z",
      checks: [
        { name: "words", verdict: "passed", what: "It answers.", advice: "" },
        { name: "tool_call", verdict: "failed", what: "It answered in words.", advice: "Use it as text." },
        { name: "cache", verdict: "unknown", what: "Nothing was reported.", advice: "" },
      ],
    };
    const tests = withTest(MODELS, test).providers.flatMap((provider) => provider.models.map((one) => [one.name, one.last_test]));
    expect(tests.filter(([, last]) => last !== null)).toEqual([["ollama/small", test]]);
    expect(failedChecks(test).map((check) => check.name)).toEqual(["tool_call"]);
    const refused = withTest(MODELS, { ...test, model: "anthropic/good", checks: [{ name: "words", verdict: "failed", what: "It answered 401.", advice: "Check ANTHROPIC_API_KEY." }] });
    expect(noticeOf(refused, "anthropic/good")).toEqual({ tone: "fail", text: "The last test failed: It answered 401. Check ANTHROPIC_API_KEY." });
  });

  it("offers only models that can be used now", () => {
    expect(usableNames(MODELS)).toEqual(["anthropic/good", "anthropic/old", "ollama/small", "ollama/mute"]);
  });
});
