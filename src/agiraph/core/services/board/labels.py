"""Labels: reads the labels of tasks, results, messages and waits from the database."""

from collections.abc import Iterable, Sequence

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import SYSTEM, NodeId, StageId, TeamId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.provenance.labels import (
    CLEAN,
    UNKNOWN,
    Label,
    join,
    of_file,
    of_folder,
    of_program,
)
from agiraph.core.domain.text import quotations
from agiraph.core.domain.work import WaitingOn, WorkNode
from agiraph.core.home.file_versions import is_unverified
from agiraph.core.store import dependencies, grants, messages, nodes, stages, teams, threads
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx

SAVED_PAGE = Label(("page",))
"""The label of a web page that an agent saved. The file's name does not contain the host."""


def of_nodes(tx: Tx, node_ids: Iterable[str]) -> Label:
    """Return the label of the results and files of these nodes."""
    return join(threads.label_of_node(tx, node_id) for node_id in node_ids)


def trusted(tx: Tx, team_id: TeamId) -> frozenset[str]:
    """Return the sources that a person trusts by a grant: hosts, programs, MCP servers, clients and
    folders.

    A grant names a program by its exact command, or by the name that it had at that time; a folder
    by its real path.
    """
    patterns = {
        grant.pattern: grant for grant in grants.of_team(tx, team_id) if _is_trust(tx, grant)
    }
    if not patterns:
        return frozenset()
    sources = {f"{kind}:{pattern}" for pattern in patterns for kind in ("page", "network")}
    sources |= {pattern for pattern in patterns if pattern.startswith(("mcp:", "client:"))}
    for folder in TEAMS.get(tx, team_id).folders:
        if folder.source in patterns:
            sources |= {*of_folder(folder.name).sources}
    for agent in teams.everyone(tx, team_id):
        named = patterns.get(agent.name)
        # A model chooses names. So a name counts only in its team, and for an agent that the
        # person can have meant.
        is_named = (
            named is not None and named.team_id == team_id and agent.created_at <= named.created_at
        )
        if agent.command is not None and (agent.command in patterns or is_named):
            sources |= {*of_program(agent.name).sources}
    return frozenset(sources)


def _is_trust(tx: Tx, grant: Grant) -> bool:
    return grant.allows("trust", grant.pattern, now=tx.now)


def of_task(tx: Tx, node: WorkNode) -> Label:
    """Return the label of a node's task, its messages and the work that it builds on."""
    named = [path.split("/")[1] for path in node.refs.values() if path.startswith("nodes/")]
    needed = [needed.id for needed in dependencies.needs(tx, node.id)]
    heard = (messages.to_answer if node.kind.answers_messages else messages.of_node)(tx, node.id)
    said = join(message.label for message in heard)
    return node.label | said | of_nodes(tx, [*named, *needed])


def of_person(tx: Tx, team_id: TeamId, text: str, attachments: Sequence[Attachment] = ()) -> Label:
    """Return the label of a person's message: of what they quote at length and what they attach.

    Their own words are clean. A quotation with a link to a message has that message's label, also
    if it is short; a link to a node has the label of its title, and a link to a file that of the
    file. In a team whose trust is open all of it is clean.
    """
    found = quotations.label_of(text) | join(of_file(a.name) for a in attachments)
    for quoted in quotations.quoted_messages(text):
        message = messages.MESSAGES.find(tx, quoted)
        found |= CLEAN if message is None else message.label
    for named in quotations.named_nodes(text):
        node = nodes.NODES.find(tx, named)
        found |= CLEAN if node is None else node.label
    for team, path in quotations.named_files(text):
        if team == team_id:
            found |= of_path(tx, team_id, path)
    return CLEAN if found and TEAMS.get(tx, team_id).trust == "open" else found


def is_of_client(tx: Tx, message: Message) -> bool:
    """Whether a program wrote a person's message for them, and the person does not trust it."""
    if not any(source.startswith("client:") for source in message.label.sources):
        return False
    kept = message.label.without(trusted(tx, message.team_id))
    return any(source.startswith("client:") for source in kept.sources)


def of_path(tx: Tx, team_id: TeamId, path: str) -> Label:
    """Return the label of a file in the team's folder: that of its node, thread, message or given
    folder, joined with the file's own."""
    match path.split("/"):
        case ["nodes", node_id, _, *_]:
            return of_nodes(tx, [node_id])
        case ["agents", _, "pages", _, *_]:
            return SAVED_PAGE
        case ["agents", _, "results", name, *_]:
            of_thread = threads.label_of(tx, ThreadId(name.partition("-")[0]))
        case ["user_uploads", "attached", message_id, *_]:
            message = messages.MESSAGES.find(tx, message_id)
            of_thread = CLEAN if message is None else message.label
        case ["folders", _, *_]:
            return of_given(tx, team_id, path)
        case _:
            of_thread = CLEAN
    known = file_labels.find(tx, team_id, path)
    own = CLEAN if known is None else known.label
    return of_thread | own or (UNKNOWN if is_unverified(path) else CLEAN)


def of_given(tx: Tx, team_id: TeamId, path: str) -> Label:
    """Return the label of a path in a given folder: of the folder, of the path itself, of what lies
    below it, and of the folders that it lies in, since a command may have written anything there.
    Sources that a person trusts are left out."""
    name = path.split("/")[1]
    known = file_labels.under(tx, team_id, f"folders/{name}")
    found = of_folder(name) | join(
        file.label
        for file in known
        if f"{file.path}/".startswith(f"{path}/") or f"{path}/".startswith(f"{file.path}/")
    )
    return found.without(trusted(tx, team_id))


def of_words(tx: Tx, sender: str, node_id: NodeId | None) -> Label:
    """Return the label of the node in which an agent wrote a message. Messages of persons and of
    the runtime are clean here; `of_person` labels what a person quotes."""
    if is_person(sender) or sender == SYSTEM or node_id is None:
        return CLEAN
    return threads.label_of_node(tx, node_id)


def of_wait(tx: Tx, waiting_on: WaitingOn) -> Label:
    """Return the label of the results that a wait was for; clean for a wait for a person or a time,
    because the caller knows the label of a person's answer."""
    match waiting_on.kind:
        case "node":
            return of_nodes(tx, [waiting_on.id])
        case "stage":
            return of_nodes(tx, [node.id for node in stages.nodes(tx, StageId(waiting_on.id))])
        case _:
            return CLEAN


def of_board(tx: Tx, shown: Iterable[WorkNode]) -> Label:
    """Return the label of a list of nodes: labelled work wrote some titles and waiting reasons."""
    found = CLEAN
    for node in shown:
        found |= node.label
        if node.waiting_reason:
            found |= threads.label_of_node(tx, node.id)
    return found
