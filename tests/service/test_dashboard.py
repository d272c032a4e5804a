"""The dashboard in a browser, with a real server behind it: live, safe, readable in light and dark and on a phone."""

import shutil

import numpy as np
import pytest
from served import SCORER, inside, make, post

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import sync_playwright

import reticent as rt

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
EVIL = "<img src=x onerror=\"document.title='broken'\">"
WAIT = 20_000


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboard")
    rt.Ledger(folder / "privacy.db").add("riders", 4.0, 1e-6)
    with inside(folder, ledger=str(folder / "privacy.db")) as (client, _):
        rng = np.random.default_rng(0)
        make(client, name=f"Latency {EVIL}", population="riders")
        make(client, id="scorer", spec=SCORER)
        make(client, "fleet", id="regions", name="Regions")
        values = rng.gamma(4.0, 50.0, 2000)
        post(client, "/v1/learners/p95/rounds", {"columns": {"values": values.tolist()}}, "a")
        keys = [("eu", "us", EVIL)[i % 3] for i in range(1200)]
        post(client, "/v1/fleets/regions/rounds", {"keys": keys, "columns": {"values": values[:1200].tolist()}}, "b")
        yield client


@pytest.fixture(scope="module")
def browser():
    if PROGRAM is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def page(browser, served, request):
    options = getattr(request, "param", {})
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(WAIT)
    trouble, asked = [], []
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda one: asked.append(one.url))
    key = served.headers["authorization"].split()[1]
    page.goto(f"{str(served.base_url).rstrip('/')}/#key={key}")
    page.wait_for_selector(".card")
    yield page
    assert trouble == []
    assert all(url.startswith((str(served.base_url), "data:")) for url in asked)
    assert page.title() != "broken"
    context.close()


def test_it_shows_what_is_there_and_names_are_texts(page):
    page.wait_for_selector(".live.on")
    assert "#key" not in page.url
    cards = page.locator(".card").all_inner_texts()
    assert any(EVIL in card for card in cards)
    assert any("riders" in card and "% of the budget is left" in card for card in cards)
    assert page.locator("img").count() == 0


def test_a_decision_that_changes_is_shown_at_once(page, served):
    page.click("text=Latency")
    page.wait_for_selector(".chart svg")
    assert "at most 2.72 times as likely" in page.inner_text(".promise")
    before = page.inner_text(".value")
    steps = page.locator(".dot").count()
    values = np.random.default_rng(1).gamma(4.0, 90.0, 1500).tolist()
    changed = post(served, "/v1/learners/p95/rounds", {"columns": {"values": values}}, f"live {before}").json()
    assert changed["changed"] == ["p95"]
    page.wait_for_function("(before) => document.querySelector('.value').innerText !== before", arg=before)
    found = served.get("/v1/learners/p95/decision").json()
    assert float(page.inner_text(".value").replace(",", "")) == pytest.approx(found["decision"], rel=1e-5)
    assert page.locator(".dot").count() > steps


def test_keys_of_a_fleet_can_be_found(page):
    page.click("text=Regions")
    page.wait_for_selector("#search")
    assert page.locator("tbody tr").count() == 3
    page.fill("#search", "e")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert page.evaluate("document.activeElement.id") == "search"
    page.click("tbody a")
    page.wait_for_selector(".chart svg")
    assert page.inner_text("#view h1").startswith("eu")


def test_a_wrong_key_is_told_and_a_right_one_forgotten(browser, served):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.goto(str(served.base_url))
    page.fill("#key", "rt_wrong")
    page.click("text=Show")
    page.wait_for_selector(".wrong:not(:empty)")
    page.fill("#key", served.headers["authorization"].split()[1])
    page.click("text=Show")
    page.wait_for_selector(".card")
    page.click("text=Forget key")
    assert page.locator(".card").count() == 0
    assert page.evaluate("sessionStorage.length") == 0
    context.close()


PHONE = {"viewport": {"width": 400, "height": 800}, "is_mobile": True, "has_touch": True}


@pytest.mark.parametrize("page", [PHONE, {**PHONE, "color_scheme": "dark"}, {"color_scheme": "dark"}], indirect=True)
def test_it_fits_a_phone_and_can_be_read_in_the_dark(page):
    from test_report_browser import CONTRAST

    for name in ("", "learners/p95", "learners/scorer", "fleets/regions"):
        if name:
            page.evaluate(
                "(to) => { document.getElementById('view').replaceChildren(); location.hash = to; }", f"#/{name}"
            )
        page.wait_for_selector(".promise" if name else ".card")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        found = page.evaluate(CONTRAST)
        assert found["count"] > 15
        assert found["low"] == []
