"""Demo story: the script of the demo for one goal, with a teammate, a question and a report.

`web/src/views/home/goalText.ts` offers the same goal.
"""

import re
from collections.abc import Sequence

from agiraph.core.domain.chat import ToolCall, Turn
from agiraph.core.domain.text.fence import without_marks

GOAL = (
    "Show me how a team works: plan a weekend trip.\nHire a teammate for the packing list, ask me "
    "where to go, and write trip.md."
)
SCRIPTED = (
    "I am a scripted demo, not an AI: the story is fixed, and only your answer changes what I "
    "write."
)
QUESTION = (
    "Where should the weekend trip go?\n\nChoose one, or write a place of your own. While you "
    "think, the team waits at no cost. Robin, whom I have hired, wrote the packing list: the board "
    "shows both tasks."
)
LINE = "`trip.md` says where the trip goes."
_CHECK = "head -1 trip.md"
_OPENING = "Show me how a team works: plan a weekend trip"
"""How a goal starts that is answered with the story: a person may change what follows."""
_TEAMMATE = "robin"
_PACKING = "Write `packing.md`: what two people pack for a weekend away."
_PACKING_LIST = """# Packing list

- clothes for two days, and something warm
- a rain jacket
- toothbrush and towel
- chargers
- a book
"""
_PLANS = {
    "The sea": ("Walk along the beach, and eat fish at the harbour", "Swim, or watch the waves"),
    "The mountains": ("Take the first cable car, and walk down", "Climb the small summit, slowly"),
    "A city": ("See one museum, and eat at the market", "Get lost in the old town"),
}
_PLACE_CHARACTERS = 80
_IN_CONVERSATION = "Not answered yet; they said: "
_NO_ANSWER = re.compile(r"\AThe human[^\n]* has not answered within .*", re.DOTALL)


def next_step(task: str, turns: Sequence[Turn], names: set[str]) -> tuple[str, ToolCall] | None:
    """Return the text and call of the story's next step; None if the task is not of the story.

    As many steps are done as calls have an answer; the last one is repeated if it was refused.
    """
    answers = {turn.ref: turn.text for turn in turns if turn.role == "tool"}
    if _PACKING in task and "publish" in names:
        steps = _teammate()
    elif _OPENING in task and "finish" in names:
        steps = _coordinator(turns, answers)
    else:
        return None
    said, call = steps[min(len(answers), len(steps) - 1)]
    return (said if answers else f"{SCRIPTED} {said}"), call


def _teammate() -> list[tuple[str, ToolCall]]:
    summary = "`packing.md` lists what two people pack for a weekend away."
    return [
        ("I write the list.", call("write_file", path="packing.md", content=_PACKING_LIST)),
        (summary, call("publish", summary=summary, reached="yes", evidence=[])),
    ]


def _coordinator(
    turns: Sequence[Turn], answers: dict[str | None, str]
) -> list[tuple[str, ToolCall]]:
    asked = (call.id for turn in turns for call in turn.calls if call.name == "ask_human")
    place = _place(answers.get(next(asked, None), ""))
    task = call(
        "assign_task", agent=_TEAMMATE, description="Write the packing list", task=_PACKING,
        output="`packing.md`, a list of at most ten lines",
    )  # fmt: skip
    summary = _report(place)
    return [
        ("What done means comes first.", call("set_acceptance", lines=[LINE], kinds=["ran"])),
        ("I hire a teammate.", call("spawn_worker", name=_TEAMMATE)),
        ("The teammate writes the packing list.", task),
        ("Only you can decide this.", call("ask_human", question=QUESTION, options=[*_PLANS])),
        (f"You chose “{place}”. I write the plan.",
         call("write_file", path="trip.md", content=_plan(place))),
        ("I check that it is there.", call("bash", command=_CHECK)),
        (summary, call("finish", summary=summary, reached="yes", evidence=[f"ran:{_CHECK}"])),
    ]  # fmt: skip


def _place(answer: str) -> str:
    """Return the place that a person named: one of the options, or the first line they wrote.

    They may have answered in the conversation instead of the inbox, or not at all in the time that
    the team waits.
    """
    said = without_marks(_NO_ANSWER.sub("", answer.strip()).removeprefix(_IN_CONVERSATION))
    words = " ".join(next(iter(said.strip().splitlines()), "").split())
    known = next((place for place in _PLANS if place.lower() == words.lower().rstrip(".!")), None)
    return known or words[:_PLACE_CHARACTERS] or "a place that you did not name"


def _plan(place: str) -> str:
    own = (f"Arrive in “{place}”, and look around", "Do what you like best there")
    saturday, sunday = _PLANS.get(place, own)
    known = "" if place in _PLANS else (
        "\nThat was not one of my three options. A scripted demo knows nothing about it; a model "
        "would plan it for you.\n"
    )  # fmt: skip
    return (
        f"# A weekend trip: {place}\n\nYou answered: “{place}”.\n{known}\n"
        f"- **Saturday**: {saturday}.\n- **Sunday**: {sunday}, and travel home.\n\n"
        "What to pack is in `packing.md`, which Robin wrote.\n"
    )


def _report(place: str) -> str:
    return (
        f"You answered “{place}”: the trip is planned.\n\n`trip.md` has the weekend, and "
        "`packing.md`, by Robin, what to pack. Look at **Board** for the two tasks, **Results** "
        "for the files and **Timeline** for who did what when.\n\n"
        "This was a scripted demo, not an AI. To let an AI work on your goal, set up a model on "
        "the **Models** page (open it from Settings)."
    )


def call(tool: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id="", name=tool, arguments=arguments)
