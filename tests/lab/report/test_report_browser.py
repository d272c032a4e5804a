"""A report in a browser: it loads alone, answers to keys, can be read in light and dark, and fits a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from example import small_study
from playwright.sync_api import sync_playwright

from reticent.lab.report import write_report

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
ARGUMENTS += ["--disable-sync", "--no-first-run"]
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
EVIL = "<script>document.title = 'broken'</script>"
CONTRAST = """() => {
  const parse = (text) => { const m = text.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const over = ([r, g, b, a], [R, G, B]) => [a * r + (1 - a) * R, a * g + (1 - a) * G, a * b + (1 - a) * B, 1];
  const light = ([r, g, b]) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((c) => linear(c / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    const found = [];
    for (let one = node; one; one = one.parentElement) found.unshift(parse(getComputedStyle(one).backgroundColor));
    return found.reduce((below, above) => over(above, below), [255, 255, 255, 1]);
  };
  const low = [];
  let count = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || node.closest("script, style, title, desc, .skip")) continue;
    if (!node.checkVisibility() || !node.getBoundingClientRect().width) continue;
    const style = getComputedStyle(node);
    const behind = ground(node);
    let colour = parse(node.closest("svg") ? style.fill : style.color);
    for (let one = node; one; one = one.parentElement) colour[3] *= Number(getComputedStyle(one).opacity);
    const [a, b] = [light(over(colour, behind)), light(behind)].sort((x, y) => y - x);
    count += 1;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push([walker.currentNode.data.trim(), ratio]);
  }
  return { count, low };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if PROGRAM is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    study = small_study((0.5, 1.0), seeds=2, title=f"A report {EVIL}")
    stream = study.stream | {"title": EVIL, "why": "a word that is long: " + "x" * 120}
    study = replace(study, stream=stream, command="reticent compare made-up " + "--option=" + "y" * 150)
    return write_report(study, tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.fixture
def view(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return a page that fails the test on any error, and on any request beyond the file itself."""
    context = browser.new_context(**getattr(request, "param", {"viewport": {"width": 1100, "height": 900}}))
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda sent: None if sent.url in (address, "data:,") else problems.append(sent.url))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto(address)
    yield page
    context.close()
    assert not problems


def column(page: Any, place: int) -> list[str]:
    return [row.inner_text() for row in page.locator(f"#happened table tbody tr > :nth-child({place})").all()]


def test_it_loads_with_its_pictures(view: Any) -> None:
    assert view.title().startswith("A report <script>")
    sizes = view.evaluate(
        "[...document.querySelectorAll('svg')].filter((one) => one.checkVisibility())"
        ".map((one) => one.getBoundingClientRect()).map((box) => [box.width, box.height])"
    )
    large = [size for size in sizes if size[0] > 300 and size[1] > 150]
    assert len(large) >= 6  # the chart and five pictures; samples in the legend are small
    assert all(min(size) > 0 for size in sizes)


def test_the_language_and_the_headings_are_in_order(view: Any) -> None:
    assert view.evaluate("document.documentElement.lang") == "en"
    levels = view.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = view.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    unnamed = view.evaluate(
        "[...document.querySelectorAll('button,input,[role=region]')].filter((one) => !(one.labels?.length"
        " || one.textContent.trim() && one.matches('button') || one.getAttribute('aria-label'))).length"
    )
    assert unnamed == 0


def test_a_table_sorts_by_click_and_by_keys(view: Any) -> None:
    heads = view.locator("#happened table thead th")
    names = [name.split("\n")[0] for name in heads.all_inner_texts()]
    place = names.index("regret") + 1
    button = heads.nth(place - 1).locator("button")
    assert heads.nth(place - 1).get_attribute("aria-sort") == "none"
    button.click()
    assert heads.nth(place - 1).get_attribute("aria-sort") == "ascending"
    rising = [float(text.split()[0]) for text in column(view, place)]
    assert rising == sorted(rising)
    view.keyboard.press("Enter")  # the button has the focus
    assert heads.nth(place - 1).get_attribute("aria-sort") == "descending"
    assert [float(text.split()[0]) for text in column(view, place)] == rising[::-1]
    heads.nth(1).locator("button").focus()
    view.keyboard.press("Space")
    assert column(view, 2)[-1] == "none"
    view.keyboard.press("Space")
    assert column(view, 2)[-1] == "none"  # what is not known stays last
    assert heads.nth(place - 1).get_attribute("aria-sort") == "none"


def test_the_cursor_follows_keys_and_mouse(view: Any) -> None:
    slider, readout = view.locator(".slider"), view.locator(".readout")
    assert readout.get_attribute("aria-live") == "polite"
    assert readout.inner_text().startswith("Round 5,000. P-COMW, epsilon 0.5: ")
    line = view.locator(".view:not([hidden]) svg.wide .cursor")
    end = float(line.get_attribute("x1"))
    slider.focus()
    for _ in range(3):
        view.keyboard.press("ArrowLeft")
    assert float(line.get_attribute("x1")) < end
    assert not readout.inner_text().startswith("Round 5,000")
    view.keyboard.press("Home")
    first = readout.inner_text()
    assert slider.get_attribute("aria-valuetext") == first.split(".")[0]
    box = view.locator("svg.wide:visible").first.bounding_box()
    view.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    middle = int(readout.inner_text().split(".")[0].removeprefix("Round ").replace(",", ""))
    assert 1500 < middle < 3500


def test_systems_can_be_switched_off_and_the_view_changed(view: Any) -> None:
    view.locator(".key").filter(has_text="DP-FTRL, epsilon 1").click()
    assert "DP-FTRL, epsilon 1" not in view.locator(".readout").inner_text()
    assert "DP-FTRL, epsilon 0.5" in view.locator(".readout").inner_text()
    assert view.locator("svg.wide g[data-series].off").count() == 2  # one in each view
    view.get_by_role("radio", name="mean loss").check()
    assert view.locator(".view:visible h4").all_inner_texts() == ["Mean loss per round so far"]
    for box in view.locator(".keys input").all():
        box.uncheck()
    assert "no system is switched on" in view.locator(".readout").inner_text()


@pytest.mark.parametrize("view", [PHONE], indirect=True)
def test_the_cursor_follows_a_finger(view: Any) -> None:
    plot = view.locator("svg.narrow:visible").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    view.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert not view.locator(".readout").inner_text().startswith("Round 5,000")


@pytest.mark.parametrize(
    "view",
    [{"color_scheme": scheme} | size for scheme in ("light", "dark") for size in ({}, PHONE)],
    indirect=True,
    ids=["light", "light phone", "dark", "dark phone"],
)
def test_all_text_stands_out_from_its_ground(view: Any) -> None:
    view.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = view.evaluate(CONTRAST)
    assert found["count"] > 150
    assert not found["low"]


def test_the_measure_of_contrast_finds_pale_text(view: Any) -> None:
    view.add_style_tag(content=".note { color: #999 !important } .picture svg text { fill: #8a8a8a !important }")
    assert len(view.evaluate(CONTRAST)["low"]) > 10


@pytest.mark.parametrize(
    "view", [PHONE, PHONE | {"java_script_enabled": False}], indirect=True, ids=["scripts", "none"]
)
def test_it_fits_a_phone(view: Any) -> None:
    for box in view.locator("details:not([open]) > summary").all():
        if box.is_visible():
            box.click()
    beyond = "[...document.querySelectorAll('body *')].filter((one) => !one.closest('.box, pre, .skip, svg')"
    assert (
        view.evaluate(f"{beyond} && one.getBoundingClientRect().right > 361).map((one) => one.outerHTML.slice(0, 90))")
        == []
    )
    assert view.evaluate("document.documentElement.scrollWidth") == 360
    assert view.locator("svg.narrow").first.is_visible()
    assert not view.locator("svg.wide").first.is_visible()


DESK = {"viewport": {"width": 1400, "height": 900}}


@pytest.mark.parametrize("view", [DESK, DESK | {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_no_table_is_cut_on_a_desk(view: Any) -> None:
    cut = "[...document.querySelectorAll('.box')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert view.evaluate(cut) == 0
    assert view.locator(".scrolls").count() == 0
    view.set_viewport_size({"width": 700, "height": 900})
    assert view.evaluate(cut) > 0  # so that this could fail


@pytest.mark.parametrize("view", [{"color_scheme": "dark", "viewport": {"width": 700, "height": 900}}], indirect=True)
def test_the_edge_of_a_box_that_scrolls_is_darker_than_the_page_in_the_dark(view: Any) -> None:
    shadow = view.locator(".scrolls").first.evaluate("(one) => getComputedStyle(one).boxShadow")
    assert shadow.startswith("rgba(0, 0, 0")


@pytest.mark.parametrize("view", [PHONE], indirect=True)
def test_on_a_phone_rows_are_lists_and_pictures_are_drawn_for_it(view: Any) -> None:
    assert not view.locator("#happened thead").first.is_visible()
    cell = view.locator("#happened tbody tr").first.locator("td").nth(1)
    assert cell.get_attribute("data-name") == "regret (not private)"
    assert "regret" in cell.evaluate("(one) => getComputedStyle(one, '::before').content")
    assert view.get_by_role("rowheader").count() > 5  # still a table to who cannot see it
    assert view.locator(".picture.large:visible").count() == 0
    small = view.locator(".picture.small:visible")
    assert small.count() >= 5
    for one in small.all():
        assert one.evaluate("(box) => box.scrollWidth <= box.clientWidth + 1")
        text = one.locator("svg text").first
        size = text.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a")
        assert size > 8.5  # pixels


@pytest.mark.parametrize("view", [{"java_script_enabled": False}], indirect=True)
def test_it_is_all_there_without_scripts(view: Any) -> None:
    assert view.locator("svg.wide:visible").count() == 2  # both views of the chart, one below the other
    assert view.locator("#happened table tbody tr").count() == 5
    assert view.locator(".picture svg:visible").count() >= 5
    for dead in (".slider", ".readout", ".choice", ".keys input", "button"):
        assert view.locator(f"{dead}:visible").count() == 0, dead
    assert view.locator(".key:visible").count() == 5


def test_every_control_is_reached_by_tab(view: Any) -> None:
    mark = """[...document.querySelectorAll('a[href],button,input,summary,[tabindex="0"]')]
      .filter((one) => one.checkVisibility() && !(one.type === 'radio' && !one.checked))
      .map((one, place) => { one.dataset.stop = place; return place; })"""
    stops = view.evaluate(mark)
    seen = []
    for _ in stops:
        view.keyboard.press("Tab")
        seen.append(view.evaluate("Number(document.activeElement.dataset.stop)"))
        outlined = "getComputedStyle(document.activeElement).outlineStyle"
        assert view.evaluate(f"document.activeElement.matches(':focus-visible') && {outlined}") != "none"
    assert seen == stops  # all of them, in the order of the page


def test_the_skip_link_shows_and_skips(view: Any) -> None:
    view.keyboard.press("Tab")
    box = view.locator(".skip").bounding_box()
    view.wait_for_function("() => document.querySelector('.skip').getBoundingClientRect().left >= 0")
    assert box["width"] > 50
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.id") == "main"


def test_the_command_can_be_copied(view: Any) -> None:
    view.get_by_role("button", name="Copy the command").click()
    view.wait_for_function("() => document.querySelector('.copied').textContent !== ''")
    assert view.locator(".copied").inner_text().startswith(("Copied", "Selected"))


def test_it_prints_with_everything_open(view: Any, tmp_path: Path) -> None:
    view.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert view.locator("details:not([open])").count() == 0
    view.emulate_media(media="print")
    assert not view.locator("nav").is_visible()
    assert view.pdf(path=tmp_path / "report.pdf").startswith(b"%PDF")
