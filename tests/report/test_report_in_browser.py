"""A report opened from the disk in a headless Chromium, as a reader would."""

import shutil
from collections.abc import Iterator

import pytest

from chess_snn.report.page import write_report

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
)
AXE = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="the checker is not installed: pip install axe-playwright-python",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

pytestmark = pytest.mark.slow


class Opened:
    """A page, and everything that went wrong or was asked for."""

    def __init__(self, page, address: str) -> None:
        self.page, self.requests, self.faults = page, [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text))
        page.goto(address)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright.sync_playwright() as started:
        try:
            opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: install the package chromium ({error.message})")
        yield opened
        opened.close()


@pytest.fixture(params=["chess_campaign", "campaign_2048"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def report(kind, request, browser, tmp_path) -> Iterator[Opened]:
    path = write_report(request.getfixturevalue(kind), tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    yield Opened(page, path.as_uri())
    page.close()


def test_it_opens_without_a_request_and_without_a_fault(report):
    assert [url for url in report.requests if not url.startswith("data:")] == [report.page.url]
    assert report.faults == []
    width = report.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1100


def test_the_buttons_step_through_a_game(report, kind):
    game = report.page.locator("article.game").first
    drawn = game.locator(".place [role=img]")
    last = drawn.get_attribute("aria-label")
    game.get_by_label("First position").click()
    first = drawn.get_attribute("aria-label")
    assert first != last
    assert "(0 of" in game.locator(".told").inner_text()
    game.get_by_label("One move on").click()
    second = drawn.get_attribute("aria-label")
    assert second != first
    assert game.locator("input").input_value() == "1"
    game.get_by_label("One move back").click()
    assert drawn.get_attribute("aria-label") == first
    game.get_by_label("Last position").click()
    assert drawn.get_attribute("aria-label") == last
    game.locator("input").focus()
    report.page.keyboard.press("ArrowLeft")
    assert drawn.get_attribute("aria-label") != last
    if kind == "chess_campaign":
        assert "king" in first


def test_pointer_and_arrow_keys_tell_the_values_of_a_curve(report):
    figure = report.page.locator("figure.chart", has=report.page.get_by_text("Policy loss"))
    told, svg = figure.locator(".told"), figure.locator("svg")
    newest = told.inner_text()
    assert newest.startswith("iteration 1")
    assert svg.locator(".curve").count() == 2
    svg.hover(position={"x": 60, "y": 60})
    assert told.inner_text().startswith("iteration 0")
    assert told.inner_text().splitlines()[1:] != newest.splitlines()[1:]
    svg.focus()
    report.page.keyboard.press("ArrowRight")
    assert told.inner_text() == newest
    report.page.keyboard.press("Home")
    assert told.inner_text().startswith("iteration 0")


def test_charts_fit_a_narrow_screen(report):
    report.page.set_viewport_size({"width": 360, "height": 800})
    report.page.wait_for_timeout(300)
    outside = report.page.evaluate("""[...document.querySelectorAll(".chart")].filter((chart) => {
        const right = chart.getBoundingClientRect().right;
        return [...chart.querySelectorAll("text, path, p, h3")]
            .some((part) => part.getBoundingClientRect().right > right + 1);
    }).length""")
    assert outside == 0


def test_print_shows_all_of_what_scrolls_on_the_screen(report):
    report.page.emulate_media(media="print")
    cut = report.page.evaluate("""[...document.querySelectorAll(".wide, pre, .raster")]
        .filter((each) => each.scrollHeight > each.clientHeight
                          || getComputedStyle(each).maxHeight !== "none")
        .map((each) => each.ariaLabel)""")
    assert cut == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 360])
def test_axe_finds_nothing_serious(report, scheme, width):
    report.page.emulate_media(color_scheme=scheme)
    report.page.set_viewport_size({"width": width, "height": 900})
    found = AXE.Axe().run(report.page).response["violations"]
    serious = [
        (rule["id"], rule["nodes"][0]["html"][:200]) for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert report.page.evaluate("document.documentElement.scrollWidth") <= width
