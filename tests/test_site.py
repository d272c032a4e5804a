"""The site: opened from disk it needs nothing from elsewhere, its search answers, and code and pictures fit."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WRAP = runpy.run_path(str(DOCS / "wrap.py"))
LONG = """
total = sum(range(10)) + sum(range(20)) + sum(range(30)) + sum(range(40)) + sum(range(50)) + sum(range(60))
print(total)                                                                           # a remark
""".lstrip()


def test_code_is_read_without_scrolling() -> None:
    pages = sorted(DOCS.rglob("*.md"))
    found = [
        (page.name, line)
        for page in pages
        for _, code in WRAP["BLOCK"].findall(page.read_text())
        for line in code.splitlines()
        if len(line) > WRAP["COLUMNS"]
    ]
    assert not found, "python docs/wrap.py wraps most of it"


def test_wrapping_changes_nothing_but_the_layout() -> None:
    done = WRAP["page"](f"```python\n{LONG}```\nand ```text```")
    assert all(len(line) <= 90 for line in done.splitlines())
    before, after = {}, {}
    exec(LONG.replace("print(total)", ""), before)
    exec(done.split("```")[1].removeprefix("python").replace("print(total)", ""), after)
    assert before["total"] == after["total"]
    assert WRAP["page"](done) == done


def test_what_the_search_needs_is_here() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    assert re.search(r"^  - offline$", text, re.MULTILINE)
    wanted = re.findall(r"^    - (vendor/\S+)|^  - ((?:vendor|css|js)/\S+)", text, re.MULTILINE)
    for path in filter(None, (part for pair in wanted for part in pair)):
        assert (DOCS / path).is_file(), path
    assert any("iframe-worker" in part for pair in wanted for part in pair)


def test_pictures_are_drawn_for_a_phone() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    for path in sorted((DOCS / "img").glob("*.png")):
        assert imread(path).shape[1] <= 1000, f"{path.name}: text would be too small where a page is 400 pixels wide"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""})
    return place


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.html", "guides/quantile.html"])
def test_the_search_answers_from_disk(site: Path, page: str) -> None:
    play = pytest.importorskip("playwright.sync_api")
    if PROGRAM is None:
        pytest.skip("there is no Chromium on this machine")
    with play.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        view = browser.new_page(viewport={"width": 1400, "height": 900})
        asked: list[str] = []
        view.on("request", lambda sent: asked.append(sent.url))
        view.goto((site / page).as_uri())
        view.locator("input.md-search__input").click()
        view.keyboard.type("certificate")
        view.wait_for_selector(".md-search-result__item")
        first = view.locator(".md-search-result__item a").first.get_attribute("href")
        assert (first or "").startswith("file:")
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
        view.set_viewport_size({"width": 400, "height": 800})
        assert view.evaluate("document.documentElement.scrollWidth") <= 400
        browser.close()
