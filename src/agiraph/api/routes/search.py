"""Search route: one search over all that a person's teams have said, done, written and learned."""

import asyncio
from typing import Annotated

from fastapi import Query

from agiraph.api.deps import ApiDep, PersonDep
from agiraph.api.file_views import FoundView
from agiraph.api.problems import documented
from agiraph.api.routing import Router
from agiraph.domain.found import Found
from agiraph.domain.ids import NodeId, TeamId
from agiraph.home import file_search
from agiraph.services import search
from agiraph.store import teams
from agiraph.store.search import newest_tasks
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

router: Router = Router("search")

NEWEST_TEAMS, NEWEST_TASKS = 200, 400
"""How many of the newest teams' uploads, and of the newest tasks' files, a search reads."""


@router.get("/search", responses=documented(404))
async def find(
    api: ApiDep,
    person: PersonDep,
    query: Annotated[str, Query(min_length=1, max_length=500)],
    team: str = "",
    limit: Annotated[int, Query(ge=1, le=50)] = 8,
) -> list[FoundView]:
    """Search teams, agents, work, files, messages, notes, insights, pages, reports and steps of
    threads for all words of a query: in one team or in all, at most `limit` of a kind. Of files the
    name is compared, and the text of the newest short ones."""

    words = search.words_of(query)

    def read(tx: Tx) -> tuple[list[Found], list[TeamId], list[tuple[TeamId, NodeId]]]:
        team_id = teams.find(tx, team).id if team else None
        found = search.find(tx, query, person_id=person, team_id=team_id, limit=limit)
        team_ids = [team_id] if team_id else teams.newest(tx, NEWEST_TEAMS)
        return found, team_ids, newest_tasks(tx, team=team_id, limit=NEWEST_TASKS)

    found, team_ids, tasks = await api.store.read(read)
    files = await asyncio.to_thread(
        file_search.find, api.home, team_ids, tasks, words, limit=limit if words else 0
    )

    def join(tx: Tx) -> list[FoundView]:
        # Labels are read after the files. A file's label is committed before the file is
        # written, so no text is shown without its label.
        complete = search.with_files(tx, found, files, words=words, limit=limit)
        names = {each: TEAMS.find(tx, each) for each in {one.team_id for one in complete}}
        return [
            FoundView.of(
                one,
                team_name=known.name,
                preview=search.preview(one.text, query),
                sources=one.label.sources,
            )
            for one in complete
            if (known := names[one.team_id])
        ]

    return await api.store.read(join)
