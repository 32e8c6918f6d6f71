# ruff: noqa: RUF001 (people write in their own languages)
"""Dialogues: twenty talks of a person with a team whose model does what its prompt says.

In seven of them one reply is wrong or rude. `python -m tests.scenarios.dialogues` prints each as
the person reads it; with a folder it writes them there, and the truth beside them.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from agiraph.testing import call, says
from agiraph.testing.script import Seen
from tests.scenarios.dialogue import CHAT, Dialogue, Fact, Hold, Line, dialogue

Story = Callable[[Dialogue], Awaitable[None]]


def id_in(seen: Seen, kind: str, words: str) -> str:
    """Return the id of this kind in the line of a reply's prompt with these words."""
    [line] = [line for line in seen.system.splitlines() if words in line and f"{kind}_" in line]
    return re.findall(rf"{kind}_\w+", line)[0]


def goal(file: str, content: str, summary: str) -> list[Line]:
    """Return the lines of a goal that is reached with a file."""
    accepts = call("set_acceptance", lines=[f"`{file}` is written"], kinds=["file"])
    return [says(accepts), *task(file, content, summary)]


def task(file: str, content: str, summary: str) -> list[Line]:
    writes = call("write_file", path=file, content=content)
    ends = call("finish", summary=summary, evidence=[f"file:{file}"])
    return [says(writes), says(ends)]


async def at_once(it: Dialogue) -> None:
    """A question answered at once, and thanks."""
    await it.founds("Plan the garden", start=False)
    await it.says("How many centimetres are in an inch?", says("2.54 centimetres.", CHAT))
    await it.says("Thanks, that was quick!", says("You are welcome.", CHAT))


async def shorter(it: Dialogue) -> None:
    """German: new work, its result, and the same once more, shorter."""
    long = "Reiher fressen Fische, Frösche, Mäuse und große Insekten; im Winter vor allem Mäuse."
    it.work("Reiher fressen", *task("reiher.md", long, long))
    it.work("Kürze", *task("kurz.md", "Fische, Frösche, Mäuse.", "Fische, Frösche, Mäuse."))
    await it.founds("Ein Merkblatt über Reiher", start=False)
    await it.says(
        "Finde bitte heraus, was Reiher fressen.",
        says("Das Ergebnis kommt gleich.", call("start_work", task="Finde, was Reiher fressen")),
    )
    await it.says(
        "Mach es bitte kürzer.",
        says("Gern, ich kürze es.", call("start_work", task="Kürze die Antwort über Reiher")),
    )
    await it.says("Danke!", says("Gern geschehen.", CHAT))


async def correction(it: Dialogue) -> None:
    """Spanish: a correction during work, and how it is going."""
    hold = Hold()
    it.work("Presupuesto", hold, *goal("total.md", "Total: 1200 €", "El viaje cuesta 1200 €."))
    await it.founds("Presupuesto para un viaje a Roma", reaches=hold)
    await it.says(
        "Por favor, usa euros y no dólares.",
        says("De acuerdo, en euros.", call("tell", node_id="coordinator")),
    )
    await it.says(
        "¿Cómo va?",
        says(call("look_into", what="coordinator")),
        says("Estoy con el presupuesto; aún no hay resultado.", CHAT),
    )
    await it.goes_on(hold)


def with_bob(it: Dialogue, title: str, hold: Hold, *end: Line) -> None:
    """Let the coordinator hire Bob and give him a task, which is held."""
    it.work(
        title,
        hold,
        says(call("write_file", path="work.md", content=f"{title}: done.")),
        says(call("publish", summary=f"{title}: done, see work.md.", evidence=["file:work.md"])),
    )
    gives = call("assign_task", agent="bob", task=title, description=title)
    it.work(
        "Renovate the kitchen",
        says(call("set_acceptance", lines=["`work.md` is there"], kinds=["file"])),
        says(call("spawn_worker", name="bob")),
        says(gives),
        *(end or task("work.md", f"{title}: done.", "The kitchen is planned: white tiles.")),
    )


async def tell_bob(it: Dialogue) -> None:
    """Tell a teammate something, and ask about him."""
    with_bob(it, "Choose the tiles", hold := Hold())
    await it.founds("Renovate the kitchen", reaches=hold)
    await it.says(
        "Tell Bob the tiles must be white.",
        says(
            "I pass that on to Bob.", call("tell", node_id="bob", words="the tiles must be white")
        ),
    )
    await it.says(
        "What is Bob doing?",
        says(call("look_into", what="bob")),
        says("Bob is choosing the tiles; he has no result yet.", CHAT),
    )
    await it.goes_on(hold)


async def two_things(it: Dialogue) -> None:
    """Chinese: two things in one message, a correction and new work."""
    hold = Hold()
    it.work("市场报告", hold, *goal("报告.md", "单位：欧元", "市场报告完成，单位是欧元。"))
    it.work("找一位牙医", *task("牙医.md", "李医生", "找到了：李医生，明天有空。"))
    await it.founds("写一份市场报告", reaches=hold)
    await it.says(
        "报告请用欧元。另外帮我找一位牙医。",
        says(
            "好的，两件事都安排了。",
            call("tell", node_id="coordinator", words="报告请用欧元。"),
            call("start_work", task="找一位牙医"),
        ),
    )
    await it.goes_on(hold)
    await it.says("谢谢！", says("不客气。", CHAT))


async def stop_one(it: Dialogue) -> None:
    """Arabic: of two pieces of work one is stopped, the other goes on."""
    hold, other = Hold(), Hold()
    it.work("الفنادق", hold, *task("f.md", "فنادق", "ثلاثة فنادق"))
    it.work("المطاعم", other, *task("m.md", "مطعم البحر", "أفضل مطعم هو مطعم البحر."))
    await it.founds("رحلة إلى تونس", start=False)
    await it.says(
        "ابحث عن الفنادق.",
        says("سأبحث عن الفنادق.", call("start_work", task="البحث عن الفنادق")),
        reaches=hold,
    )
    await it.says(
        "وابحث أيضا عن المطاعم.",
        says("وعن المطاعم أيضا.", call("start_work", task="البحث عن المطاعم")),
    )
    await it.says(
        "أوقف البحث عن الفنادق، وجدت فندقا.",
        says("أوقفته.", call("stop_work", node_id="البحث عن الفنادق")),
        reaches=other,
    )
    await it.goes_on(hold, other)


async def no_more_need(it: Dialogue) -> None:
    """The goal is cancelled, and nothing goes on by itself."""
    hold = Hold()
    it.work("newsletter", hold, *goal("n.md", "News", "The newsletter is written."))
    await it.founds("Write our newsletter", reaches=hold)
    await it.says(
        "Please make it two pages.", says("Two pages.", call("tell", node_id="coordinator"))
    )
    await it.says(
        "Cancel it, I do not need it any more.",
        says("I have cancelled it.", call("stop_work", node_id="Write our newsletter")),
    )
    await it.goes_on(hold)
    await it.later("Three hours pass.", hours=3)
    await it.says(
        "Is anything still running?",
        says(call("check_board")),
        says("No, nothing is running.", CHAT),
    )


async def yes(it: Dialogue) -> None:
    """Hindi: a question that the agent asks in its words, answered by yes."""
    it.work(
        "पुरानी फ़ाइलें",
        says("क्या मैं पुरानी फ़ाइलें हटा दूँ?"),
        *goal("सूची.md", "हटाई गईं", "पुरानी फ़ाइलें हटा दी गईं।"),
    )
    await it.founds("पुरानी फ़ाइलें साफ़ करो")
    await it.says("हाँ", says("ठीक है, मैं हटा देता हूँ।", call("answer")))
    await it.says("धन्यवाद!", says("ज़रूर।", CHAT))


async def two_questions(it: Dialogue) -> None:
    """Japanese: two open questions and one yes, then the other by its card."""
    it.work(
        "旅行を計画",
        says(call("ask_human", question="ホテルを予約してもいいですか？")),
        *goal("旅行.md", "計画", "旅行の計画ができました。"),
    )
    it.work(
        "お土産",
        says(call("ask_human", question="お菓子を買ってもいいですか？")),
        *task("土産.md", "お菓子", "お土産はお菓子に決めました。"),
    )
    await it.founds("旅行を計画してください")
    await it.says(
        "お土産も選んでください。",
        says("はい、選びます。", call("start_work", task="お土産を選ぶ")),
    )
    await it.says("はい", says("わかりました。", call("answer")))
    await it.answers("いいえ、自分で予約します")


async def too_late(it: Dialogue) -> None:
    """An answer that comes after the work has ended, and what is done with it."""
    asks = call("ask_human", question="Which colour for the fence?", default="brown",
                timeout_minutes=30)  # fmt: skip
    it.work("Paint plan", says(asks), *goal("plan.md", "Brown.", "The fence will be brown."))
    it.work("in green", *task("plan.md", "Green.", "The plan says green now."))
    await it.founds("Paint plan for the fence")
    await it.later("An hour passes.", hours=1)
    await it.says(
        "Green, please.",
        lambda seen: says("Green it is.", call("answer", question_id=it.asked[0])),
        says("The plan is finished already, with brown. Shall I change it to green?", CHAT),
    )
    await it.says(
        "Yes, please.",
        says("I change it.", call("start_work", task="Write the plan for the fence in green")),
    )


async def reminders(it: Dialogue) -> None:
    """French: a reminder, and something every Monday."""
    it.work("dentiste", says(call("finish", summary="C'est l'heure d'appeler le dentiste.")))
    it.work("nouvelles", *task("n.md", "Calme.", "Cette semaine : rien de nouveau."))
    await it.founds("Aide-moi au bureau", start=False)
    await it.says(
        "Rappelle-moi dans deux heures d'appeler le dentiste.",
        says("C'est noté.", call("promise", what="Rappeler d'appeler le dentiste", when="2 hours")),
    )
    every = call("promise", what="Résumer les nouvelles", repeats="0 9 * * MON",
                 zone="Europe/Paris")  # fmt: skip
    await it.says("Et chaque lundi à 9 h, résume les nouvelles.", says("Chaque lundi.", every))
    await it.later("Deux heures passent.", hours=2)
    await it.later("Une semaine passe.", days=7)


async def remembers(it: Dialogue) -> None:
    """Spanish: remember, forget, and a secret."""
    await it.founds("Ayúdame con la casa", start=False)
    await it.says(
        "Recuerda que soy vegetariana y que mi vecino se llama Luis.",
        says(
            "Lo recuerdo.",
            call("remember", content="Es vegetariana", their_words="soy vegetariana"),
            call("remember", content="Su vecino es Luis", their_words="mi vecino se llama Luis"),
            CHAT,
        ),
    )
    await it.says(
        "Olvida lo del vecino.",
        lambda seen: says(
            "Olvidado.", call("forget", memory_id=id_in(seen, "memory", "Luis")), CHAT
        ),
    )
    await it.enters("wifi", "Gato-Azul-2291")
    await it.says(
        "La clave del wifi es Gato-Azul-2291, está guardada como secret wifi.",
        says("Bien, usaré el secreto wifi.", CHAT),
    )


async def sounds_like_status(it: Dialogue) -> None:
    """A question about the world that sounds like one about the work; it is reached in part."""
    part = "OpenAI works on new models. I found nothing about its hardware plans."
    it.work(
        "OpenAI",
        says(call("write_file", path="openai.md", content=part)),
        says(call("finish", summary=part, evidence=["file:openai.md"], reached="partly")),
    )
    await it.founds("Watch the AI industry", start=False)
    await it.says(
        "What is OpenAI working on?",
        says("I look into it.", call("start_work", task="Find out what OpenAI is working on")),
    )
    await it.says(
        "So what is missing?",
        says("The hardware plans: I found nothing about them.", CHAT),
    )


async def failed_child(it: Dialogue) -> None:
    """A task of a teammate fails, and the goal is not reached. One reply says nothing."""
    hold = Hold()
    it.work("Buy the tiles", hold,
            says(call("publish", summary="The shop has closed.", reached="no")))  # fmt: skip
    it.work(
        "Renovate the kitchen",
        says(call("set_acceptance", lines=["`tiles.md` is there"], kinds=["file"])),
        says(call("spawn_worker", name="bob")),
        says(call("assign_task", agent="bob", task="Buy the tiles", description="Buy the tiles")),
        says(call("finish", summary="There are no tiles: the shop has closed.", reached="no")),
    )
    await it.founds("Renovate the kitchen", reaches=hold)
    await it.says("How is it going?", says(CHAT), *[says("")] * 7)
    await it.goes_on(hold)
    await it.says("Never mind, thank you.", says("You are welcome.", CHAT))


async def correction_as_new_work(it: Dialogue) -> None:
    """Portuguese: a correction is made new work by mistake; the person undoes that."""
    hold = Hold()
    it.work("Cartaz", hold, *goal("cartaz.md", "FESTA", "O cartaz está pronto."))
    it.work("letras maiores", *task("letras.md", "x", "As letras são maiores."))
    await it.founds("Cartaz para a festa", reaches=hold)
    await it.says(
        "Por favor, letras maiores.",
        says("Vou aumentar as letras.", call("start_work", task="Fazer letras maiores")),
    )
    await it.undoes("letras maiores")
    await it.goes_on(hold)
    await it.says("Obrigada!", says("De nada.", CHAT))


async def older_answered(it: Dialogue) -> None:
    """Arabic: a yes is given to the older question; the person undoes it."""
    hold, asks = Hold(), says(call("ask_human", question="هل أحجز القاعة؟"))
    it.work("حفلة", asks, hold, asks)
    it.work("الدعوات", says(call("ask_human", question="هل أرسل الدعوات؟")),
            *task("d.md", "دعوات", "أرسلت الدعوات."))  # fmt: skip
    await it.founds("حضّر حفلة")
    await it.says("واكتب الدعوات أيضا.", says("حسنا.", call("start_work", task="كتابة الدعوات")))
    await it.says(
        "نعم",
        lambda seen: says("حسنا.", call("answer", question_id=it.asked[0])),
        reaches=hold,
    )
    await it.undoes("القاعة")
    await it.goes_on(hold)
    await it.says(
        "قصدت الدعوات: نعم.",
        lambda seen: says("أرسلها.", call("answer", question_id=it.asked[1])),
    )


async def wrong_stop(it: Dialogue) -> None:
    """German: asked how it goes, the reply stops the work; the person undoes it."""
    hold = Hold()
    it.work("Geschichte", hold, *goal("g.md", "1291", "Die Geschichte ist geschrieben."))
    await it.founds("Geschichte der Stadt", reaches=hold)
    tells = call("tell", node_id="coordinator")
    await it.says("Bitte mit allen Jahreszahlen.", says("Mit Jahreszahlen.", tells))
    await it.says(
        "Wie läuft es?", says("Es läuft gut.", call("stop_work", node_id="Geschichte der Stadt"))
    )
    await it.goes_on(hold)
    await it.undoes("Stopped: Geschichte")


async def wrong_answer(it: Dialogue) -> None:
    """Japanese: small talk becomes the answer to a question; the person undoes it."""
    hold, asks = Hold(), says(call("ask_human", question="何味がいいですか？"))
    ends = goal("c.md", "いちご", "いちごのケーキに決めました。")
    it.work("ケーキ", asks, hold, asks, *ends)
    await it.founds("ケーキを選んでください")
    await it.says("今日は暑いですね。", says("本当に暑いですね。", call("answer")), reaches=hold)
    await it.undoes("何味")
    await it.goes_on(hold)
    await it.answers("いちご")
    await it.says("ありがとう", says("どういたしまして。", CHAT))


async def words_only(it: Dialogue) -> None:
    """Chinese: the reply says that it has passed something on, and has not."""
    with_bob(it, "Choose the tiles", hold := Hold())
    await it.founds("Renovate the kitchen", reaches=hold)
    await it.says("请告诉 Bob 瓷砖要白色的。", says("我已经转告 Bob 了。", CHAT))
    await it.says(
        "Bob 真的知道了吗？",
        says(call("look_into", what="bob")),
        says("还没有，对不起。", CHAT),
    )
    await it.says(
        "那请现在告诉他：瓷砖要白色的。",
        says("好的。", call("tell", node_id="bob", words="瓷砖要白色的。")),
    )
    await it.goes_on(hold)


async def claimed_reminder(it: Dialogue) -> None:
    """A reminder that is claimed and not set; asked again, it is set."""
    it.work("call mum", says(call("finish", summary="It is time to call mum.")))
    await it.founds("Help me this week", start=False)
    await it.says(
        "Remind me tomorrow at nine to call mum.",
        says("Done, I will remind you tomorrow at nine.", CHAT),
    )
    await it.says(
        "Did you set it?",
        says(
            "It is set now.",
            call("promise", what="Remind them to call mum", when="2026-01-06T09:00"),
        ),
    )
    await it.later("A day passes.", days=1)


STORIES: tuple[Story, ...] = (
    at_once, shorter, correction, tell_bob, two_things, stop_one, no_more_need, yes, two_questions,
    too_late, reminders, remembers, sounds_like_status, failed_child, correction_as_new_work,
    older_answered, wrong_stop, wrong_answer, words_only, claimed_reminder,
)  # fmt: skip
ALL: dict[str, Story] = {story.__name__: story for story in STORIES}


async def play(story: Story, folder: Path) -> Dialogue:
    """Play a dialogue in a folder of its own; return it when the person has left."""
    async with dialogue(folder) as it:
        await story(it)
    return it


def truth(it: Dialogue) -> str:
    """Return what was done in truth, step by step."""
    lines: list[str] = []
    for step in it.steps:
        lines.append(f"- {step.printed[0]}")
        facts = sorted(step.facts, key=lambda fact: fact[0].endswith("ended"))
        lines += [f"  - {_as_line(fact)}" for fact in facts] or ["  - nothing was done"]
    return "\n".join(lines)


def _as_line(fact: Fact) -> str:
    what, *more = fact
    return f"{what}: " + " | ".join(more)


async def main(*folders: str) -> None:
    """Print each dialogue as the person reads it; with a folder, write them and the truth there."""
    truths: list[str] = []
    for number, (name, story) in enumerate(ALL.items(), 1):
        with tempfile.TemporaryDirectory() as folder:
            (home := Path(folder, "home")).mkdir()
            it = await play(story, home)
        text = "\n".join(it.transcript)
        print(f"\n===== {number:02}\n{text}")
        truths.append(f"## {number:02} {name}: {story.__doc__}\n\n{truth(it)}\n")
        for out in folders:
            await asyncio.to_thread(Path(out, f"{number:02}.txt").write_text, f"{text}\n")
    for out in folders:
        await asyncio.to_thread(Path(out, "truth.md").write_text, "\n".join(truths))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
