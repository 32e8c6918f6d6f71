"""Search over HTTP: one query finds things of every kind in all teams, or in one."""

import base64
import os
from typing import Any

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.records.attached_files import path_of
from agiraph.core.domain.text.fence import enclose_foreign, mark_of
from agiraph.core.services.mail import bus
from agiraph.core.services.search import preview
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.verbs import items
from agiraph.testing import call, says
from tests.api.serving import Served

REPORT = "The kettle boils at dawn, and 100% of the tea is drunk."


async def _two_teams(served: Served) -> tuple[str, str]:
    """Return the ids of a team that has published a file about kettles, and of one that knows an
    insight about them."""
    served.world.script(
        "ada",
        says(call("write_file", path="scratch/kettles.md", content=REPORT)),
        says(call("finish", summary="The kettle was described in kettles.md.")),
    )
    worked = await served.world.found("Describe the kettle")
    await served.world.settle()
    served.world.script("ada", says("There is one.", call("no_work_needed")))
    knows = await served.world.found("Grow beans", start=False)
    label = of_page("https://example.org/tea")

    def learn(tx: Tx) -> None:
        items.learn(tx, knows.coordinator, "fact", "A kettle whistles", author=OWNER)
        items.learn(
            tx, knows.coordinator, "fact", "Copper kettle", author=knows.coordinator.id, label=label
        )

    await served.world.store.write(learn)
    await served.world.chat(knows.coordinator.id, "Is there a Kettle for the beans?")
    return worked.team.id, knows.team.id


async def _found(served: Served, query: str, **more: Any) -> list[dict[str, Any]]:
    asked = "&".join(f"{name}={value}" for name, value in {"query": query, **more}.items())
    status, found = await served.ask("GET", f"/search?{asked}")
    assert status == 200, found
    return found


async def test_a_search_finds_things_of_every_kind_with_the_words_around_them(
    served: Served,
) -> None:
    worked, knows = await _two_teams(served)
    found = await _found(served, "kettle")

    assert {(one["kind"], one["team_id"]) for one in found} == {
        ("team", worked),
        ("work", worked),
        ("file", worked),
        ("message", worked),
        ("step", worked),
        ("message", knows),
        ("insight", knows),
    }
    (file,) = [one for one in found if one["kind"] == "file"]
    assert (file["title"], file["ref"], file["preview"]) == (
        "kettles.md",
        f"nodes/{file['node_id']}/published/kettles.md",
        REPORT,
    )
    assert [one["title"] for one in found if one["kind"] == "work"] == ["Describe the kettle"]
    steps = {one["title"]: one for one in found if one["kind"] == "step"}
    wrote = steps["Called write_file scratch/kettles.md"]
    assert wrote["preview"] == f"scratch/kettles.md {REPORT}"
    _, turns = await served.ask("GET", f"/threads/{wrote['thread_id']}")
    assert [turn["role"] for turn in turns if turn["seq"] == wrote["seq"]] == ["assistant"]
    message = next(one for one in found if (one["kind"], one["team_id"]) == ("message", knows))
    assert message["preview"] == "Is there a Kettle for the beans?"
    learned = {one["preview"]: one["sources"] for one in found if one["kind"] == "insight"}
    assert learned == {"A kettle whistles": [], "Copper kettle": ["page:example.org"]}


async def test_a_search_in_one_team_and_for_several_words_finds_less(served: Served) -> None:
    worked, knows = await _two_teams(served)

    assert {one["team_id"] for one in await _found(served, "kettle", team=knows)} == {knows}
    both = await _found(served, "kettle beans")
    assert {one["kind"] for one in both if one["kind"] in ("message", "work")} == {"message"}
    first, *_ = await _found(served, "coordinator", team=worked)
    assert first["kind"] == "agent"
    assert (await served.ask("GET", "/search?query=kettle&team=team_x"))[0] == 404


async def test_any_query_is_valid_and_wildcards_stand_for_themselves(served: Served) -> None:
    await _two_teams(served)
    for query in ("%25", "_", "!", "'\"", "  ", "*", "(", "AND", "ä\u202e"):
        found = [one for one in await _found(served, query) if one["kind"] in ("work", "message")]
        assert all(query.replace("%25", "%").strip() in one["preview"] for one in found), query


async def test_a_search_ignores_the_case_of_every_letter(served: Served) -> None:
    served.world.script("ada", says("Da.", call("no_work_needed")))
    team = await served.world.found("Grow beans", start=False)
    await served.world.chat(team.coordinator.id, "Wo ist die Übersicht?")
    assert [one["kind"] for one in await _found(served, "übersicht")] == ["message"]
    assert [one["kind"] for one in await _found(served, "ÜBERSICHT")] == ["message"]


async def test_uploaded_attached_and_delivered_files_are_found_by_name_and_text(
    served: Served,
) -> None:
    worked, knows = await _two_teams(served)
    folder = served.world.runtime.home.team(TeamId(knows)).folder
    folder.write("user_uploads/offer notes.md", b"# Offer\n\nThree jars of marmalade.")
    folder.write("user_uploads/picture.png", b"\x89PNG\0marmalade")
    folder.write("user_uploads/long.txt", b"marmalade " * 20_000)
    (served.world.runtime.home.path / "secret.txt").write_text("marmalade")
    place = served.world.runtime.home.path / "teams" / knows / "user_uploads"
    (place / "link.txt").symlink_to(served.world.runtime.home.path / "secret.txt")
    (place / "linked").symlink_to(served.world.runtime.home.path)
    data = base64.b64encode(b"The marmalade is bitter.").decode()
    note = Attachment(name="taste.txt", media_type="text/plain", data=data)
    team = await served.world.team(TeamId(knows))

    def attach(tx: Tx) -> str:
        sent = bus.send(
            tx,
            Draft(
                team_id=team.id,
                sender=OWNER,
                recipient=OWNER,
                text="See the file.",
                attachments=(note,),
            ),
        )
        return sent.id

    message = await served.world.store.write(attach)

    found = await _found(served, "marmalade")
    assert {(one["kind"], one["ref"], one["title"], one["preview"]) for one in found} == {
        ("file", path_of(message, 0, "taste.txt"), "taste.txt", "The marmalade is bitter."),
        (
            "file",
            "user_uploads/offer notes.md",
            "offer notes.md",
            "# Offer Three jars of marmalade.",
        ),
    }
    for query, path in (
        ("offer jars", "user_uploads/offer notes.md"),
        ("picture", "user_uploads/picture.png"),
        ("long.txt", "user_uploads/long.txt"),
    ):
        assert [(one["team_id"], one["ref"]) for one in await _found(served, query)] == [
            (knows, path)
        ]
    assert await _found(served, "marmalade", team=worked) == []


async def test_a_file_that_went_to_two_agents_is_found_once_and_files_keep_to_the_limit(
    served: Served,
) -> None:
    served.world.script("ada")
    team = await served.world.found("Grow beans", start=False)
    folder = served.world.runtime.home.team(team.team.id).folder
    for name in ("a", "b", "c"):
        folder.write(f"user_uploads/{name}.md", b"Three jars of marmalade.")
    data = base64.b64encode(b"The marmalade is bitter.").decode()
    taste, other = (
        Attachment(name=name, media_type="text/plain", data=data) for name in ("taste", "other")
    )

    def attach(tx: Tx, *files: Attachment) -> str:
        about: dict[str, Any] = {"team_id": team.team.id, "sender": OWNER, "recipient": OWNER}
        return bus.send(tx, Draft(**about, text="See it.", attachments=files)).id

    await served.world.store.write(attach, taste)
    last = await served.world.store.write(attach, taste, other)
    await served.world.store.write(attach, taste, other)  # passed on: listed with the first one
    found = await _found(served, "marmalade")
    assert sorted(one["ref"] for one in found) == [
        "user_uploads/a.md",
        path_of(last, 0, "taste"),
        path_of(last, 1, "other"),
        "user_uploads/b.md",
        "user_uploads/c.md",
    ]
    few = await _found(served, "marmalade", limit=2)
    assert [one["title"] for one in few] == [one["title"] for one in found[:2]]


async def test_files_with_the_words_in_their_name_come_first_then_the_newest(
    served: Served,
) -> None:
    served.world.script("ada")
    team = await served.world.found("Grow beans", start=False)
    place = served.world.runtime.home.path / "teams" / team.team.id / "user_uploads"
    place.mkdir(parents=True, exist_ok=True)
    names = ("marmalade old.md", "marmalade new.md", "jars old.md", "jars new.md")
    for day, name in enumerate(names, 1):
        (place / name).write_text("Three jars of marmalade.")
        os.utime(place / name, (day * 86_400, day * 86_400))
    data = base64.b64encode(b"The marmalade is bitter.").decode()

    def attach(tx: Tx) -> None:
        about: dict[str, Any] = {"team_id": team.team.id, "sender": OWNER, "recipient": OWNER}
        for number, name in enumerate(("marmalade sent", "taste", "smell")):
            file = Attachment(name=name, media_type="text/plain", data=data)
            bus.send(tx, Draft(**about, text=f"See file {number}.", attachments=(file,)))

    await served.world.store.write(attach)
    first = ["marmalade sent", "marmalade new.md", "marmalade old.md"]
    found = [one["title"] for one in await _found(served, "marmalade")]
    assert (found[:3], {*found[3:5]}) == (first, {"taste", "smell"})
    assert found[5:] == ["jars new.md", "jars old.md"]
    for limit in (1, 2, 3):
        few = await _found(served, "marmalade", limit=limit)
        assert [one["title"] for one in few] == first[:limit]


async def test_a_label_of_a_file_is_shown_with_the_hit(served: Served) -> None:
    team = await served.world.found("Grow beans", start=False)
    served.world.runtime.home.team(team.team.id).folder.write(
        "user_uploads/page.md", b"Copper boils."
    )
    label = of_page("https://example.org/tea")
    await served.world.store.write(
        file_labels.put, team.team.id, "user_uploads/page.md", b"Copper boils.", label=label
    )
    (file,) = await _found(served, "copper")
    assert (file["kind"], file["sources"]) == ("file", ["page:example.org"])


def test_a_preview_shows_no_marks_of_fences() -> None:
    fenced = enclose_foreign("Two jars, please.", thread="t", source="the file offer.md")
    mark = mark_of("Two jars, please.", thread="t")

    assert preview(fenced, "jars") == "Two jars, please."
    assert preview(f"It says:\n{fenced}\nThat is all.", "all") == ("…jars, please. That is all.")
    assert preview(f"Two jars <<< {mark[:7]}", "jars") == "Two jars"
    assert mark not in preview(" ".join(fenced.split()), "jars")


def test_a_preview_begins_with_a_word_shortly_before_the_first_found_one() -> None:
    before = "The kettle boils at dawn, and all of the tea is drunk."
    assert preview(f"{before} Two jars.", "jars") == "…the tea is drunk. Two jars."
    assert preview("Tea, and two jars.", "jars") == "Tea, and two jars."
    assert preview(f"{'x' * 100}jars", "jars") == f"…{'x' * 24}jars"
