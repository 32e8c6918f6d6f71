"""Research and search over HTTP."""

from urllib.parse import quote

from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.store.texts import passages
from agiraph.testing import call, says
from tests.api.serving import Served


async def _team(served: Served) -> dict[str, str]:
    _, team = await served.ask("POST", "/teams", {"goal": "Beans", "start": False})
    return team


async def test_research_ends_with_a_report_in_the_inbox(served: Served) -> None:
    """Also one that found nothing. The question names a page: there is no search engine here."""
    plan = '{"question": "How do beans come in bags?", "kind": "fact", "sub_questions": []}'
    served.world.script("ada", says(plan), says(call("done")))
    team = await _team(served)
    path = f"/agents/{team['coordinator_id']}/research"
    goal = "How do beans come, by http://nowhere.invalid/?"
    status, node = await served.ask("POST", path, {"goal": goal, "max_pages": 1})
    assert (status, node["title"]) == (201, f"Research: {goal}")
    await served.world.settle()
    _, inbox = await served.ask("GET", "/inbox")
    assert [item["message"]["kind"] for item in inbox["items"]] == ["report"]
    status, found = await served.ask(
        "POST", f"/teams/{team['id']}/memory/search", {"query": "bags of beans"}
    )
    assert (status, {hit["kind"] for hit in found}) == (200, {"report"})


async def test_search_finds_a_note_that_a_person_wrote_by_hand(served: Served) -> None:
    served.world.script("ada")
    team = await _team(served)
    notes = served.world.path / "teams" / team["id"] / "memory" / "knowledge"
    notes.mkdir(parents=True)
    (notes / "beans.md").write_text("# Beans\n\nThey are kept in the cellar.\n")
    body = {"query": "cellar"}
    _, found = await served.ask("POST", f"/teams/{team['id']}/memory/search", body)
    assert [hit["ref"] for hit in found] == ["memory/knowledge/beans.md"]


async def test_the_text_of_a_page_that_was_read_is_found_by_its_url(served: Served) -> None:
    served.world.script("ada")
    team = await _team(served)
    url = "https://beans.example/bags?kind=all&lang=en"
    text = "# Bags\n\nBeans come in bags.\n\n# Boxes\n\nPeas come in boxes."
    about = {"team_id": team["id"], "kind": "page", "ref": url, "title": "On beans"}
    await served.world.store.write(passages.put, **about, text=text, label=of_page(url))
    path = f"/teams/{team['id']}/memory/page?url="
    status, page = await served.ask("GET", path + quote(url, safe=""))
    assert (status, page.pop("read_at") is not None) == (200, True)
    sources = ["page:beans.example"]
    assert page == {"url": url, "title": "On beans", "text": text, "sources": sources}
    assert (await served.ask("GET", f"{path}https://none.example/"))[0] == 404


async def test_a_conversation_is_searched_for_all_words_of_a_query_page_by_page(
    served: Served,
) -> None:
    served.world.script("ada", *(says("Heard.", call("no_work_needed")) for _ in range(4)))
    team = await _team(served)
    path = f"/agents/{team['coordinator_id']}"
    for text in ("Beans in a bag", "Peas in a box", "A bag of BEANS"):
        await served.ask("POST", f"{path}/send", {"message": text})
        await served.world.settle()
    _, [newest] = await served.ask("GET", f"{path}/conversation?query=beans%20Bag&limit=1")
    before = f"&before={newest['id']}"
    _, [older] = await served.ask("GET", f"{path}/conversation?query=beans%20Bag&limit=1{before}")
    assert (newest["text"], older["text"]) == ("A bag of BEANS", "Beans in a bag")
    assert await served.ask("GET", f"{path}/conversation?query=barrel") == (200, [])
    _, all_of_it = await served.ask("GET", f"{path}/conversation?query=%20")
    assert len(all_of_it) == 6
    assert (await served.ask("GET", f"{path}/conversation?query={'x' * 501}"))[0] == 422


async def test_wrong_research_and_search_requests_are_refused(served: Served) -> None:
    served.world.script("ada")
    team = await _team(served)
    path = f"/agents/{team['coordinator_id']}/research"
    assert (await served.ask("POST", path, {"goal": " "}))[0] == 422
    assert (await served.ask("POST", path, {"goal": "x", "max_pages": 1000}))[0] == 422
    assert (await served.ask("POST", path, {"goal": "x", "depth": "bottomless"}))[0] == 422
    assert (await served.ask("POST", path, {"goal": "x", "continues": "node_none"}))[0] == 404
    assert (await served.ask("POST", "/agents/nobody/research", {"goal": "x"}))[0] == 404
    assert (await served.ask("POST", "/teams/none/memory/search", {"query": "x"}))[0] == 404
