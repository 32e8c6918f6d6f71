"""Files and results: what a team delivered can be found, read, changed and taken along."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.ids import TeamId, new_id
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store import nodes
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts.folder_changes import FOLDER_CHANGES, FolderChange
from agiraph.core.store.tx import Tx
from agiraph.testing import call, says
from tests.api.serving import Served
from tests.web_ui.browsing import Watch, go, watched
from tests.web_ui.test_accessibility import OTHER_LINKS, THEMES, axe_violations
from tests.web_ui.windows import serving

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

LONG_LINE = f"begin {'x' * 2_900_000} finish"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A page at a team that has delivered files."""

    served: Served
    page: Page
    watch: Watch
    team: str
    agent: str
    folder: Path

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Expect that the server refuses requests: a browser logs each."""
        self.watch.is_server_away = True
        yield
        self.watch.is_server_away = False

    async def show(self, screen: str, rest: str = "") -> None:
        """Show a screen of the team, as a link would."""
        to = f"/t/{self.team}/{screen}" + (f"/{rest}" if rest else "")
        await go(self.page, f"{self.served.origin}{to}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shelf(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shelf]:
    home = tmp_path_factory.mktemp("shelf") / "home"
    async with serving(home, clock=SystemClock()) as served:
        served.world.script("ada", *DELIVERY)
        goal = {"goal": "Compare prices", "learns": False}
        _, team = await served.ask("POST", "/teams", goal)
        await served.world.settle()
        folder = home / "teams" / team["id"]
        write_files(folder)
        await served.world.store.write(add_change, TeamId(team["id"]), folder)
        async with watched(browser, served.origin) as (page, watch):
            yield Shelf(served, page, watch, team["id"], team["coordinator_id"], folder)


DELIVERY = (
    says(
        call("write_file", path="report.md", content="# Prices\n\nApples cost **2 euros**.\n"),
        call("write_file", path="table.csv", content="fruit,price\napple,2\npear,3\n"),
    ),
    says(
        call(
            "finish",
            summary="Apples are cheaper: see `report.md` and table.csv, "
            "not `missing.md` nor `../../token`.",
        )
    ),
)


def write_files(folder: Path) -> None:
    (folder / "one-line.txt").write_text(LONG_LINE)
    (folder / "one-line.json").write_text(f'{{"key": "{"y" * 2_900_000}"}}')
    (folder / "one-line.csv").write_text("a,b," * 700_000)
    (folder / "many-lines.log").write_text("\n" * 9_000_000)


def add_change(tx: Tx, team_id: TeamId, folder: Path) -> None:
    """Record that the goal's agent changed a file in a folder of the person, with both copies."""
    versions: list[str] = []
    for text in (b"apples: 3\n", b"apples: 2\n"):
        digest = hashlib.sha256(text).hexdigest()
        copy = folder / "history" / "copies" / digest[:2] / digest
        copy.parent.mkdir(parents=True)
        copy.write_bytes(text)
        versions.append(f"file 644 {digest}")
    given = GivenFolder(name="project", path=str(folder), access="rw")
    TEAMS.update(tx, team_id, folders=(given,))
    change = FolderChange(
        id=new_id("change"),
        team_id=team_id,
        folder="project",
        path="prices.txt",
        created_at=tx.now,
        node_id=nodes.newest(tx, team_id, limit=1)[0],
        before=versions[0],
        after=versions[1],
    )
    FOLDER_CHANGES.insert(tx, change)


CHARACTERS = "document.querySelector('main').textContent.length"


async def test_a_file_with_a_line_of_millions_of_characters_opens(shelf: Shelf) -> None:
    """Only the visible part is in the page: to lay out the whole line takes a browser seconds."""
    page = shelf.page
    await shelf.show("files", "one-line.txt")
    await page.get_by_text("begin xxx").wait_for()
    assert await page.evaluate(CHARACTERS) < 200_000

    await page.get_by_role("region", name="Source").focus()
    await page.keyboard.press("End")
    await page.get_by_text("xxx finish").wait_for()

    await shelf.show("files", "one-line.json")
    await page.get_by_role("button", name="more characters").wait_for()
    assert await page.evaluate(CHARACTERS) < 200_000

    await shelf.show("files", "one-line.csv")
    await page.get_by_text("Only the first 60 columns are shown").wait_for()
    assert await page.evaluate("document.querySelectorAll('*').length") < 2_000

    await shelf.show("files", "many-lines.log")
    await page.get_by_text("Only the first 8.0 MiB are shown").wait_for()
    await page.get_by_text("Only the first 200,000 lines are shown").wait_for()
    assert await page.evaluate("document.querySelectorAll('*').length") < 2_000


async def test_results_show_who_delivered_what_and_preview_it(shelf: Shelf) -> None:
    page = shelf.page
    await shelf.show("results")
    cards = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Compare"))
    card = cards.filter(has_text="delivered 2 files")
    await card.get_by_role("link", name="Coordinator").wait_for()
    assert await axe_violations(page, without=OTHER_LINKS) == []

    await card.get_by_role("list").get_by_role("link", name="report.md").first.press("Enter")
    preview = page.get_by_role("region", name="Preview")
    await preview.get_by_text("Apples cost 2 euros.").wait_for()
    assert await axe_violations(page, contrast_in=(), without=OTHER_LINKS) == []
    await preview.get_by_role("link", name="Close the preview").click()
    await expect(preview).to_have_count(0)

    await page.get_by_role("button", name="Files", exact=True).click()
    await page.get_by_role("link", name="table.csv").first.click()
    await preview.get_by_role("cell", name="pear").wait_for()
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Download all").click()
    assert (await started.value).suggested_filename == "Compare prices results.zip"
    await page.get_by_role("button", name="Changes", exact=True).click()
    await page.get_by_role("link", name="project/prices.txt").click()
    changed = preview.get_by_role("region", name="What the change made of the file")
    await expect(changed).to_contain_text("Removed: apples: 3")
    await expect(changed).to_contain_text("Added: apples: 2")


async def test_names_of_files_in_messages_lead_to_the_files(shelf: Shelf) -> None:
    page = shelf.page
    await shelf.show(f"a/{shelf.agent}")
    log = page.get_by_role("log")
    link = log.get_by_role("link", name="report.md").last
    await link.wait_for()
    await log.get_by_text("not confirmed").last.click()
    await log.get_by_text("missing.md").last.wait_for()
    await expect(log.get_by_role("link", name="missing.md")).to_have_count(0)
    await expect(log.get_by_role("link", name="token")).to_have_count(0)
    await link.press("Enter")
    await expect(page.get_by_role("region", name="Preview")).to_contain_text("Apples cost 2 euros")

    # The inbox calls the work as the results do, and lists its files.
    await go(page, f"{shelf.served.origin}/inbox")
    items = page.get_by_role("region", name="Items")
    await items.get_by_role("link", name="Compare prices").first.click()
    files = page.get_by_role("region", name="Files")
    await files.get_by_role("link", name="Download report.md").wait_for()
    assert await axe_violations(page, contrast_in=(), without=OTHER_LINKS) == []
    await files.get_by_role("link", name="table.csv").first.press("Enter")
    await expect(page.get_by_role("region", name="Preview")).to_contain_text("pear")


IS_OUT_OF_THE_WAY = """toast => {
  const { x, y, width, height } = toast.getBoundingClientRect();
  const below = document.elementFromPoint(x + width / 2, y + height / 2);
  return y > innerHeight / 2 && !toast.contains(below);
}"""
"""Whether a toast is in the lower half of the page, and the pointer goes through it."""


async def test_a_text_is_edited_with_history_and_nothing_of_an_agent_is_overwritten(
    shelf: Shelf,
) -> None:
    page, plan = shelf.page, shelf.folder / "PLAN.md"
    await shelf.show("files", "PLAN.md")
    preview = page.get_by_role("region", name="Preview")
    await preview.get_by_role("button", name="Edit").press("Enter")
    text = preview.get_by_role("textbox", name="Text of PLAN.md")
    await text.fill("# Plan\n\nMy first plan\n")
    await text.press("Control+s")
    await expect(text).to_have_count(0)
    await expect(preview.get_by_role("button", name="Edit")).to_be_focused()
    toast = page.get_by_role("status").filter(has_text="PLAN.md is saved.")
    assert await toast.evaluate(IS_OUT_OF_THE_WAY)
    await preview.get_by_text("My first plan").wait_for()

    await preview.get_by_role("button", name="Edit").click()
    await text.fill("# Plan\n\nMy second plan\n")
    plan.write_text("# Plan\n\nThe agent's plan\n")
    with shelf.refusing():
        await preview.get_by_role("button", name="Save").click()
        alert = preview.get_by_role("alert")
        await expect(alert).to_contain_text("was changed while you wrote")
    both = preview.get_by_role("region", name="Their text and yours")
    await expect(both).to_contain_text("The agent's plan")
    await expect(both).to_contain_text("My second plan")
    assert await axe_violations(page, contrast_in=THEMES, without=OTHER_LINKS) == []
    assert plan.read_text() == "# Plan\n\nThe agent's plan\n"
    await preview.get_by_role("button", name="Go on editing mine").click()
    await shelf.show("files", "SOUL.md")  # unsaved words are kept
    await shelf.show("files", "PLAN.md")
    await preview.get_by_text("What you wrote here is kept, but not saved.").wait_for()
    assert await axe_violations(page, contrast_in=THEMES, without=OTHER_LINKS) == []
    await preview.get_by_role("button", name="Go on editing").click()
    await preview.get_by_text("they were not saved yet").wait_for()
    await expect(text).to_have_value("# Plan\n\nMy second plan\n")
    # Whoever goes elsewhere while it is saved stays there.
    go_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await page.route("**/files/PLAN.md", hold)
    elsewhere = page.get_by_role("navigation", name="Teams").get_by_role("link", name="Inbox")
    await text.press("Control+s")
    await elsewhere.focus()
    go_on.set()
    await expect(text).to_have_count(0)
    await expect(elsewhere).to_be_focused()
    await expect(preview.get_by_role("button", name="Go on editing")).to_have_count(0)
    await page.unroute("**/files/PLAN.md")
    await preview.get_by_text("My second plan").wait_for()

    await preview.get_by_role("button", name="History").click()
    versions = preview.get_by_role("list", name="Versions").get_by_role("button")
    await expect(versions).to_have_count(4)
    await versions.nth(1).click()
    changes = preview.get_by_role("region", name="Changes since this version")
    await expect(changes).to_contain_text("The agent's plan")
    assert await axe_violations(page, contrast_in=(), without=OTHER_LINKS) == []
    await preview.get_by_role("button", name="Restore this version").click()
    await expect(changes).to_have_count(0)
    await expect(preview.get_by_role("button", name="History")).to_be_focused()
    await preview.get_by_text("The agent's plan").wait_for()
    assert plan.read_text() == "# Plan\n\nThe agent's plan\n"

    # Line ends and bytes that a text field would lose.
    lines = shelf.folder / "user_uploads" / "lines.txt"
    lines.parent.mkdir(exist_ok=True)
    lines.write_bytes(b"one\r\ntwo\r\n")
    await shelf.show("files", "user_uploads/lines.txt")
    await expect(preview).to_contain_text("two")
    await preview.get_by_role("button", name="Edit").click()
    text = preview.get_by_role("textbox", name="Text of lines.txt")
    await text.fill("one\nnew\ntwo\n")
    await text.press("Control+s")
    await expect(text).to_have_count(0)
    assert lines.read_bytes() == b"one\r\nnew\r\ntwo\r\n"
    lines.unlink()
    latin = shelf.folder / "user_uploads" / "latin.txt"
    latin.write_bytes(b"Caf\xe9 " * 3 + b"and a longer text around it " * 9)
    await shelf.show("files", "user_uploads/latin.txt")
    await preview.get_by_text("are not UTF-8").wait_for()
    await preview.get_by_role("button", name="History").wait_for()
    await expect(preview.get_by_role("button", name="Edit")).to_have_count(0)
    latin.unlink()


DROP = """([name, text, bytes]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  if (bytes) files.items.add(new File([new Uint8Array(bytes)], "large.bin"));
  const target = document.querySelector("[aria-label='Files of the team']");
  for (const type of ["dragover", "drop"])
    target.dispatchEvent(
      new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: files }),
    );
}"""


async def test_files_are_uploaded_by_button_and_by_dropping_them(shelf: Shelf) -> None:
    page, uploads = shelf.page, shelf.folder / "user_uploads"
    await shelf.show("files")
    await page.get_by_role("navigation", name="Files of the team").wait_for()
    await page.evaluate(DROP, ["prices.csv", "a,1\n", 11 * 2**20])
    panel = page.get_by_role("region", name="Uploads")
    await expect(panel).to_contain_text("1 of 2 files uploaded")
    await expect(panel).to_contain_text("larger than the 10.0 MiB that a file may have")

    one = {"name": "prices.csv", "mimeType": "text/csv", "buffer": b"a,2\n"}
    with shelf.refusing():
        await page.get_by_label("Files to upload").set_input_files(one)  # type: ignore[arg-type]
        await expect(panel).to_contain_text("There is a file with this name already")
    assert await axe_violations(page, contrast_in=(), without=OTHER_LINKS) == []
    await panel.get_by_role("button", name="Keep both").press("Enter")
    await expect(panel).to_contain_text("user_uploads/prices (2).csv")
    await panel.get_by_role("button", name="Close the list of uploads").click()
    stored = {path.name: path.read_text() for path in uploads.iterdir()}
    assert stored == {"prices.csv": "a,1\n", "prices (2).csv": "a,2\n"}


MARKDOWN = """# Extras

The sum is $a^2 + b^2 = c^2$, it costs $5 or $10:

$$\\int_0^1 x\\,dx = \\frac{1}{2}$$

```mermaid
graph TD
  A[Start] --> B{Good?}
  B -->|yes| C["<img src=x onerror=alert(1)>"]
```

```diff
- old
+ new
```

```mermaid
gantt
  title No such diagram here
```
"""


async def test_markdown_shows_formulas_diagrams_and_diffs(shelf: Shelf) -> None:
    page = shelf.page
    (shelf.folder / "extras.md").write_text(MARKDOWN)
    await shelf.show("files", "extras.md")
    preview = page.get_by_role("region", name="Preview")
    await expect(preview.locator("math")).to_have_count(2)
    await preview.get_by_text("it costs $5 or $10").wait_for()
    picture = preview.get_by_role("img", name="Diagram: graph TD")
    await picture.wait_for()
    assert await picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 50
    await expect(preview.locator(".hljs-addition")).to_have_text("+ new")
    await preview.get_by_text("cannot be drawn here").wait_for()
    assert await axe_violations(page, contrast_in=(), without=OTHER_LINKS) == []
    await preview.get_by_role("button", name="Show the source").click()
    await preview.get_by_text("B -->|yes| C").wait_for()


async def test_a_picture_with_a_script_is_shown_and_runs_nothing(shelf: Shelf) -> None:
    page = shelf.page
    (shelf.folder / "evil.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30' onload='alert(1)'>"
        "<script>alert(2)</script><image href='https://evil.invalid/x.png'/>"
        "<rect width='40' height='30' fill='red'/></svg>"
    )
    await shelf.show("files", "evil.svg")
    preview = page.get_by_role("region", name="Preview")
    await preview.get_by_text("40 \N{MULTIPLICATION SIGN} 30").wait_for()
    await preview.get_by_role("button", name="Source").click()
    await expect(preview.get_by_role("region", name="Source")).to_contain_text("alert(2)")
