"""Stories: the scenarios of `tests/scenarios`, each to be run in a folder of its own.

A story is a scenario's test. Its own assertions are judged where it stands; here they only end the
part that its author wrote, and a person who answers every question plays on.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from agiraph.testing import World
from tests.research import test_job
from tests.scenarios import (
    test_ask_and_go_on,
    test_beside_the_goal,
    test_chat_flow,
    test_conversation,
    test_growing_graph,
    test_human_in_the_loop,
    test_research,
    test_seed_000_criteria,
    test_seed_002_003_criteria,
    test_seed_1_smoke,
    test_seed_2_tools,
    test_seed_3_deep_research,
    test_seed_4_recursive,
    test_seed_5_human,
    test_seed_6_memory,
    test_seed_7_compaction,
    test_seed_8_autonomous,
    test_seed_9_infinite,
    test_seed_10_mixed_team,
    test_two_researchers,
    test_watch_a_month,
    watching,
)

Story = Callable[[Path], Awaitable[None]]


def _url(folder: Path) -> str:
    return f"sqlite:///{folder / 'agiraph.db'}"


def _with_world(test: Callable[[World], Awaitable[None]]) -> Story:
    async def story(folder: Path) -> None:
        async with World(folder / "home", database_url=_url(folder)) as world:
            await test(world)

    return story


def _with_folder(test: Callable[[Path, str], Awaitable[None]]) -> Story:
    async def story(folder: Path) -> None:
        await test(folder, _url(folder))

    return story


async def _recursive(folder: Path) -> None:
    async with World(folder / "home", database_url=_url(folder)) as world:
        await test_seed_4_recursive.test_a_worker_delegates_parts_of_its_task(world, folder)


async def _memory(folder: Path) -> None:
    await test_seed_6_memory.test_the_second_run_uses_the_notes_of_the_first(
        folder, _url(folder), 0
    )


async def _criteria(folder: Path) -> None:
    async with test_seed_000_criteria.told(folder / "home", mode="infinite") as story:
        await story.an_hour_passes()


async def _delegation(folder: Path) -> None:
    async with test_seed_002_003_criteria.told(folder / "home"):
        pass


async def _research(folder: Path) -> None:
    async with (
        test_research.pages_about_pumps() as library,
        test_research.world_with(library, folder / "home") as world,
    ):
        test = test_research.test_research_gives_a_report_in_the_inbox_and_a_summary_in_the_chat
        await test(world, library)


async def _research_job(folder: Path) -> None:
    await test_job.test_gaps_are_read_for_before_the_report_is_written(folder)


async def _conversation(folder: Path) -> None:
    async with test_conversation.told(folder / "home") as talk:
        await test_conversation.converse(talk)


async def _watch(folder: Path) -> None:
    async with test_watch_a_month.watching(folder, _url(folder), watching.watches) as watch:
        await watch.pass_days(2)


CHEAP: dict[str, Story] = {
    "criteria": _criteria,
    "delegation": _delegation,
    "seed 1": _with_folder(test_seed_1_smoke.test_an_agent_searches_writes_a_note_and_answers),
    "seed 5": _with_folder(
        test_seed_5_human.test_the_answer_of_a_person_decides_how_the_work_continues
    ),
    "seed 6": _memory,
    "seed 7": _with_folder(
        test_seed_7_compaction.test_compaction_repeats_no_work_and_loses_no_result
    ),
    "seed 9": _with_folder(
        test_seed_9_infinite.test_a_cycle_that_waits_for_a_person_is_cancelled_when_the_team_stops
    ),
    "grown stage": _with_world(
        test_growing_graph.test_nodes_added_to_a_stage_that_has_just_ended_are_waited_for
    ),
    "answer after a restart": _with_world(
        test_human_in_the_loop.test_an_answer_reaches_its_question_after_a_restart
    ),
    "two questions": _with_world(
        test_human_in_the_loop.test_two_open_questions_get_their_own_answers
    ),
    "late answer": _with_world(
        test_human_in_the_loop.test_a_late_answer_becomes_new_work_if_the_person_wants_it
    ),
    "side work": _with_world(test_beside_the_goal.test_side_work_is_done_while_the_goal_waits),
    "message beside a question": _with_world(
        test_beside_the_goal.test_a_message_beside_an_open_question_is_heard_and_the_question_stays
    ),
    "asks": _with_folder(
        test_ask_and_go_on.test_work_goes_on_while_a_person_allows_revokes_and_refuses_a_command
    ),
    "alarm": _with_world(
        test_beside_the_goal.test_an_alarm_that_finishes_leaves_the_goal_and_its_question_alone
    ),
    "answer and messages": _with_world(
        test_chat_flow.test_an_answer_and_messages_at_the_same_time_are_all_delivered
    ),
}
"""Stories that take a fraction of a second."""

COSTLY: dict[str, Story] = {
    "interrupted wait": _with_world(
        test_chat_flow.test_a_message_sent_while_an_agent_decides_to_wait_ends_its_wait
    ),
    "seed 2": _with_folder(test_seed_2_tools.test_a_script_is_written_run_repaired_and_run_again),
    "seed 3": _with_folder(
        test_seed_3_deep_research.test_a_team_of_two_vendors_researches_in_parallel_and_reports
    ),
    "seed 4": _recursive,
    "seed 8": _with_folder(
        test_seed_8_autonomous.test_a_script_writes_the_tool_and_the_coordinator_runs_it
    ),
    "seed 10": _with_folder(
        test_seed_10_mixed_team.test_workers_find_a_bug_by_talking_and_repair_it
    ),
    "chat flow": _with_folder(
        test_chat_flow.test_person_coordinator_and_workers_talk_while_all_work_continues
    ),
    "conversation": _conversation,
    "growing graph": _with_world(
        test_growing_graph.test_nodes_are_created_as_results_and_suggestions_arrive
    ),
    "research": _research,
    "research job": _research_job,
    "watch": _watch,
    "two researchers": _with_world(
        test_two_researchers.test_the_second_researcher_begins_with_what_the_first_one_learned
    ),
}
"""Stories with programs, several vendors or many agents."""

ALL = CHEAP | COSTLY
