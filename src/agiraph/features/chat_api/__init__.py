"""Chat API: agents as models of OpenAI's API, for chat clients and SDKs."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="chat_api",
    routers=("agiraph.features.chat_api.routes:router",),
    error_forms={"/v1": "agiraph.features.chat_api.errors:answer"},
    tables="agiraph.features.chat_api.rows:TABLES",
)
