"""OpenAI compatibility: `/v1` for chat clients, which see each agent as a model."""
