"""Agiraph: a persistent multi-agent runtime. These names are its public API.

- `Client` talks to a running server; the views and values are what its methods return.
- `tool`, `engine`, `channel` and `provider` mark functions of your own for the runtime.
- `World`, `ModelServer` and the scripted models test agents without a real model.

Every other module is internal and may change with any release. The names are loaded when they are
first used: a command that asks a server must not load the runtime.
"""

from importlib import import_module

# What type checkers take for `typing.TYPE_CHECKING`: a command with secrets in its environment
# imports this twice, and `typing` takes longer than the start of Python.
TYPE_CHECKING: bool = False

if TYPE_CHECKING:
    from agiraph.api.decision_views import (
        BulkOutcome,
        BulkView,
        DecidedView,
        DigestEntry,
        DigestGroup,
        DigestView,
        GrantView,
        InboxCounts,
        InboxRows,
        RulesPreview,
    )
    from agiraph.api.feature_views.channels import ChannelView, PairingView
    from agiraph.api.feature_views.extensions import (
        ContentView,
        ExtensionView,
        SkillFile,
        SkillView,
    )
    from agiraph.api.feature_views.history import BoardMomentView, TimelineView
    from agiraph.api.feature_views.knowledge import PageTextView, SearchHitView, UnconfirmedView
    from agiraph.api.feature_views.known import Change, Insight, Memory, Note
    from agiraph.api.feature_views.mcp import McpServerDetails, McpServerView
    from agiraph.api.feature_views.research import ResearchView
    from agiraph.api.feature_views.sharing import MadeShareView, SharesView
    from agiraph.api.feature_views.specialists import PromptPreview, SpecialistFile, SpecialistView
    from agiraph.api.file_views import (
        FileVersionView,
        FolderChangeView,
        FoundPathView,
        FoundView,
        ResultPage,
        ResultView,
        SavedView,
        UndoneView,
    )
    from agiraph.api.server_views import (
        EmergencyStopView,
        ExaminationView,
        HealthView,
        IssuedToken,
        LinkUseView,
        LinkView,
        ModelCheck,
        ModelsView,
        ModelTestView,
        ModelView,
        OperationsView,
        PersonView,
        ProviderStatusView,
        ProviderView,
        ResumedView,
        SetupView,
        StatusView,
        TokenView,
        WorkStopView,
    )
    from agiraph.api.views import (
        AgentView,
        AttachmentView,
        CostView,
        CreatedTriggerView,
        DeletionView,
        FileView,
        FolderView,
        GivenFolderView,
        GrantOffer,
        InboxItem,
        InboxPage,
        JobView,
        MemberOverview,
        MessageView,
        NodeDetail,
        NodeView,
        StageView,
        TeamOverview,
        TeamSettingsView,
        TeamView,
        ThreadView,
        ToolCallView,
        TriggerView,
        TurnView,
    )
    from agiraph.client import Client, ConnectionLost, Frame, ReplyDelta, Resync
    from agiraph.client.features import EventLogPage
    from agiraph.core.domain.chat import ToolCall
    from agiraph.core.domain.costs import CostHistory, DayCosts, TeamCosts
    from agiraph.core.domain.errors import Declined, NotFound, Unreachable
    from agiraph.core.domain.events import Event
    from agiraph.core.domain.provenance.access import AuditEntry
    from agiraph.core.domain.records.channels import Incoming, Receipt, Received
    from agiraph.core.domain.records.deliveries import OutgoingMessage
    from agiraph.core.domain.records.search import Hit
    from agiraph.core.domain.triggers import Firing
    from agiraph.core.domain.window_use import WindowUse
    from agiraph.core.domain.work import Usage
    from agiraph.core.tools.own_code import (
        CommandOutput,
        Context,
        ToolContext,
        channel,
        engine,
        provider,
        tool,
    )
    from agiraph.models.base import Reply, Request
    from agiraph.testing import (
        Call,
        ManualClock,
        ModelServer,
        PowerCut,
        ReactiveModel,
        Says,
        ScriptedModel,
        ScriptExhausted,
        World,
        call,
        says,
    )

__all__ = [
    "AgentView",
    "AttachmentView",
    "AuditEntry",
    "BoardMomentView",
    "BulkOutcome",
    "BulkView",
    "Call",
    "Change",
    "ChannelView",
    "Client",
    "CommandOutput",
    "ConnectionLost",
    "ContentView",
    "Context",
    "CostHistory",
    "CostView",
    "CreatedTriggerView",
    "DayCosts",
    "DecidedView",
    "Declined",
    "DeletionView",
    "DigestEntry",
    "DigestGroup",
    "DigestView",
    "EmergencyStopView",
    "Event",
    "EventLogPage",
    "ExaminationView",
    "ExtensionView",
    "FileVersionView",
    "FileView",
    "Firing",
    "FolderChangeView",
    "FolderView",
    "FoundPathView",
    "FoundView",
    "Frame",
    "GivenFolderView",
    "GrantOffer",
    "GrantView",
    "HealthView",
    "Hit",
    "InboxCounts",
    "InboxItem",
    "InboxPage",
    "InboxRows",
    "Incoming",
    "Insight",
    "IssuedToken",
    "JobView",
    "LinkUseView",
    "LinkView",
    "MadeShareView",
    "ManualClock",
    "McpServerDetails",
    "McpServerView",
    "MemberOverview",
    "Memory",
    "MessageView",
    "ModelCheck",
    "ModelServer",
    "ModelTestView",
    "ModelView",
    "ModelsView",
    "NodeDetail",
    "NodeView",
    "NotFound",
    "Note",
    "OperationsView",
    "OutgoingMessage",
    "PageTextView",
    "PairingView",
    "PersonView",
    "PowerCut",
    "PromptPreview",
    "ProviderStatusView",
    "ProviderView",
    "ReactiveModel",
    "Receipt",
    "Received",
    "Reply",
    "ReplyDelta",
    "Request",
    "ResearchView",
    "ResultPage",
    "ResultView",
    "ResumedView",
    "Resync",
    "RulesPreview",
    "SavedView",
    "Says",
    "ScriptExhausted",
    "ScriptedModel",
    "SearchHitView",
    "SetupView",
    "SharesView",
    "SkillFile",
    "SkillView",
    "SpecialistFile",
    "SpecialistView",
    "StageView",
    "StatusView",
    "TeamCosts",
    "TeamOverview",
    "TeamSettingsView",
    "TeamView",
    "ThreadView",
    "TimelineView",
    "TokenView",
    "ToolCall",
    "ToolCallView",
    "ToolContext",
    "TriggerView",
    "TurnView",
    "UnconfirmedView",
    "UndoneView",
    "Unreachable",
    "Usage",
    "WindowUse",
    "WorkStopView",
    "World",
    "call",
    "channel",
    "engine",
    "provider",
    "says",
    "tool",
]

_VIEWS = "agiraph.api.views"
_MODULES = {
    "agiraph.api.decision_views": (
        "BulkOutcome", "BulkView", "DecidedView", "DigestEntry", "DigestGroup", "DigestView",
        "GrantView", "InboxCounts", "InboxRows", "RulesPreview",
    ),
    "agiraph.api.feature_views.channels": ("ChannelView", "PairingView"),
    "agiraph.api.feature_views.extensions": (
        "ContentView", "ExtensionView", "SkillFile", "SkillView",
    ),
    "agiraph.api.feature_views.history": ("BoardMomentView", "TimelineView"),
    "agiraph.api.feature_views.knowledge": ("PageTextView", "SearchHitView", "UnconfirmedView"),
    "agiraph.api.feature_views.mcp": ("McpServerDetails", "McpServerView"),
    "agiraph.api.feature_views.research": ("ResearchView",),
    "agiraph.api.feature_views.sharing": ("MadeShareView", "SharesView"),
    "agiraph.api.feature_views.specialists": ("PromptPreview", "SpecialistFile", "SpecialistView"),
    "agiraph.api.file_views": (
        "FileVersionView", "FolderChangeView", "FoundPathView", "FoundView", "ResultPage",
        "ResultView", "SavedView", "UndoneView",
    ),
    "agiraph.api.server_views": (
        "EmergencyStopView", "ExaminationView", "HealthView", "IssuedToken", "LinkUseView",
        "LinkView", "ModelCheck", "ModelTestView", "ModelView", "ModelsView", "OperationsView",
        "PersonView", "ProviderStatusView", "ProviderView", "ResumedView", "SetupView",
        "StatusView", "TokenView", "WorkStopView",
    ),
    "agiraph.client": ("Client", "ConnectionLost", "Frame", "ReplyDelta", "Resync"),
    "agiraph.client.features": ("EventLogPage",),
    "agiraph.core.domain.provenance.access": ("AuditEntry",),
    "agiraph.core.domain.records.channels": ("Incoming", "Receipt", "Received"),
    "agiraph.core.domain.chat": ("ToolCall",),
    "agiraph.core.domain.costs": ("CostHistory", "DayCosts", "TeamCosts"),
    "agiraph.core.domain.records.deliveries": ("OutgoingMessage",),
    "agiraph.core.domain.errors": ("Declined", "NotFound", "Unreachable"),
    "agiraph.core.domain.events": ("Event",),
    "agiraph.api.feature_views.known": ("Change", "Insight", "Memory", "Note"),
    "agiraph.core.domain.records.search": ("Hit",),
    "agiraph.core.domain.triggers": ("Firing",),
    "agiraph.core.domain.window_use": ("WindowUse",),
    "agiraph.core.domain.work": ("Usage",),
    "agiraph.core.tools.own_code": (
        "CommandOutput", "Context", "ToolContext", "channel", "engine", "provider", "tool",
    ),
    "agiraph.models.base": ("Reply", "Request"),
    "agiraph.testing": (
        "Call", "ManualClock", "ModelServer", "PowerCut", "ReactiveModel", "Says",
        "ScriptExhausted", "ScriptedModel", "World", "call", "says",
    ),
}  # fmt: skip
"""The names by the module that has them; all others are views."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Hidden from type checkers: they would take any misspelt name for one that this function returns.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'agiraph' has no attribute {name!r}")
        module = next((module for module, names in _MODULES.items() if name in names), _VIEWS)
        value = globals()[name] = getattr(import_module(module), name)
        return value
