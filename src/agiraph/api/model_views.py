"""Model views: what the API returns about models and their providers."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.views import View

FactOrigin = Literal["file", "server", "package", "assumed"]
State = Literal["ready", "down", "no_key", "not_running"]


class NumberFact(View):
    value: float
    origin: FactOrigin = Field(description="Where the value was read: agiraph.toml is `file`.")


class FlagFact(View):
    value: bool
    origin: FactOrigin


class ModelCheck(View):
    name: Literal["words", "tool_call", "schema", "cache"]
    verdict: Literal["passed", "failed", "unknown"]
    what: str = Field(description="What happened.")
    advice: str = Field(description="What to do; empty if nothing needs to be done.")


class ModelTestView(View):
    model: str
    at: datetime = Field(description="When it was tested.")
    checks: list[ModelCheck] = Field(description="Only `words` if the model does not answer.")


class ModelView(View):
    name: str = Field(description="As `provider/model`, the way a team names it.")
    is_default: bool
    window: NumberFact = Field(description="Tokens that a request may hold.")
    output_limit: NumberFact | None = Field(description="Tokens of the longest reply.")
    tools: FlagFact | None = Field(description="None: not known. Without tools, use `text/…`.")
    images: FlagFact | None
    pdf: FlagFact | None
    thinking: FlagFact | None
    search: FlagFact | None = Field(description="Whether its vendor can search the web for it.")
    input_usd: NumberFact | None = Field(description="Dollars per million input tokens.")
    output_usd: NumberFact | None = Field(description="Dollars per million output tokens.")
    retires: str = Field(description="The day on which the vendor stops it; empty: none is known.")
    use_instead: str = Field(description="The model to use instead of one that retires.")
    advice: str = Field(
        description="What is wrong with its window and what to do; empty: nothing is known."
    )
    last_test: ModelTestView | None = Field(description="None: it was never tested.")


class ProviderView(View):
    name: str
    address: str
    is_local: bool = Field(description="Whether it is a server that people run themselves.")
    takes_key: bool = Field(description="Whether it is a vendor that needs an API key.")
    has_stored_key: bool = Field(
        description="Whether its key was entered here, so that it can be removed here."
    )
    state: State = Field(
        description="`down`: a server in the settings that does not answer; `not_running`: a local "
        "server that was not found at its usual port."
    )
    advice: str = Field(description="What to do to use it; empty if it is ready.")
    models: list[ModelView]


class ModelsView(View):
    default: str = Field(description="The model of teams that name none.")
    default_problem: str = Field(
        description="Why the default model cannot be used and what to do; empty: it can."
    )
    providers: list[ProviderView] = Field(description="Those that are ready come first.")
