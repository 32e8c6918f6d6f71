"""What people see of a research: the job over HTTP, and answers about its report."""

from pathlib import Path

import pytest

from agiraph.testing import call, says
from agiraph.testing.clock import ManualClock
from tests.api.serving import serving
from tests.local_web import local_web
from tests.research.kit import FACTS, QUESTION, SITES, TALL, Cast, reads, scene

READER = reads(FACTS, ("It is 330 metres tall.", TALL))


async def test_a_job_is_shown_with_plan_ledger_pages_and_the_marks_of_its_report(
    tmp_path: Path,
) -> None:
    cast = Cast(readers={QUESTION: READER})
    clock = ManualClock()
    async with (
        local_web(clock, SITES) as web,
        serving(tmp_path / "home", clock=clock, web=web.access, model="scripted/rob") as served,
    ):
        served.world.model("rob", cast)
        _, team = await served.ask("POST", "/teams", {"goal": "Towers", "start": False})
        path = f"/agents/{team['coordinator_id']}/research"
        _, node = await served.ask("POST", path, {"goal": QUESTION, "depth": "quick"})
        await served.world.settle()

        status, job = await served.ask("GET", f"/nodes/{node['id']}/research")
        assert status == 200
        shown = {key: job[key] for key in ("question", "state", "depth", "phase", "language")}
        assert shown == {
            "question": QUESTION,
            "state": "done",
            "depth": "quick",
            "phase": "ended",
            "language": "English",
        }
        [part] = job["sub_questions"]
        assert (part["question"], part["state"], part["evidence"]) == (QUESTION, "done", 1)
        [entry] = job["evidence"]
        assert (entry["id"], entry["quote"], entry["site"]) == ("e1", TALL, "tower.example")
        assert [(p["url"], p["evidence"]) for p in job["pages"]] == [(FACTS, 1)]
        assert (job["searches_limit"], job["pages_limit"], job["usd_limit"]) == (4, 6, 0.3)
        [source] = job["sources"]
        assert (source["number"], source["url"], source["is_confirmed"]) == (1, FACTS, False)
        assert job["citations"] == [{"number": 1, "evidence": ["e1"], "is_confirmed": False}] * 2

        _, inbox = await served.ask("GET", "/inbox")
        [item] = [one for one in inbox["items"] if one["message"]["kind"] == "report"]
        assert item["reply_to"] == team["coordinator_id"]
        _, listed = await served.ask("GET", f"/teams/{team['id']}/research")
        assert [one["node_id"] for one in listed] == [node["id"]]
        assert (await served.ask("GET", "/nodes/node_none/research"))[0] == 404


@pytest.mark.slow
async def test_a_question_about_a_report_is_answered_from_its_quotations(tmp_path: Path) -> None:
    async with scene(tmp_path, Cast(readers={QUESTION: READER})) as it:
        ada = it.world.script(
            "ada",
            says("I look into it.", call("research_start", goal=QUESTION)),
            lambda _: says(call("read_report", id=job.id, section="evidence from the tower")),
            says("Its own page says so.", call("no_work_needed")),
            says("I write it down.", call("start_work", task="Write how tall the tower is")),
            says(call("knowledge_search", query="how tall is the tower")),
            says("It stands in the report.", call("done", result="It is 330 metres tall.")),
        )
        chat = it.world.chat
        await chat(it.team.coordinator.id, QUESTION)
        await it.world.settle()
        job = await it.job()
        await chat(it.team.coordinator.id, "How do you know that it is 330 metres?")
        await it.world.settle()
        answer = ada.requests[-1].turns[-1].text
        assert f"“{TALL}”" in answer
        assert FACTS in answer
        await chat(it.team.coordinator.id, "Write down how tall it is.")
        await it.world.settle()
        [found] = [said for r in ada.requests if "(report, " in (said := r.turns[-1].text)]
        assert (TALL in found, job.id in found) == (True, True)
