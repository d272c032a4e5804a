"""Every Python block and every command of README and docs runs, links lead somewhere, and the reference is whole."""

import os
import re
import shlex
import sys
import textwrap
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import reticent as rt
from reticent.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"(?:^<!-- (\w+) -->\n)?^( *)```(\w+)\n(.*?)^\2```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\]\(([^)\s]+)\)")
ANCHOR = re.compile(r'\{ *#([\w-]+) *\}|id="([\w-]+)"')
# A command runs and prints the lines that are shown, unless a comment before its block says otherwise: "slow" ones are
# tried by hand, "fails" ones exit with code 2, and "about" ones print numbers that are different every time.
MARKS = ("", "slow", "fails", "about")


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    """Return the blocks in some languages: the word in the comment before it, the language, and the code."""
    found = FENCE.findall(page.read_text())
    return [(mark, kind, textwrap.dedent(code)) for mark, _, kind, code in found if kind in languages]


def commands(code):
    """Return the command lines of a console block, those that go on after a backslash joined."""
    lines = re.sub(r"\\\n\s*", " ", code).splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def shown(code):
    """Return the lines of output in a console block, without the dots for what is left out."""
    lines = re.sub(r"\\\n\s*", " ", code).splitlines()
    return [" ".join(line.split()) for line in lines if not line.startswith(("$ ", "...")) and line.strip()]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """What a page writes goes to a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run(page, elsewhere, capsys):
    names = {"__name__": page.stem}
    for mark, _, code in blocks(page, "python"):
        if mark and find_spec(mark) is None:
            continue  # a block that is marked with the name of a package is for those who have it
        exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name)
def test_commands_run(page, elsewhere, capfd, monkeypatch):
    """In the order of the page, in one folder: a command finds what an earlier one or a `csv` block has made."""
    for mark, kind, code in blocks(page, "console", "csv"):
        assert mark in MARKS, f"{name(page)}: a console block is marked {mark!r}"
        if kind == "csv":
            first, _, rest = code.partition("\n")
            Path(first.lstrip("# ")).write_text(rest)
            continue
        if mark != "slow":
            expected = 2 if mark == "fails" else 0
            told = "".join(run(words, expected, page, capfd, monkeypatch) for words in commands(code))
            for line in [] if mark == "about" else shown(code):
                assert line in [" ".join(one.split()) for one in told.splitlines()], f"{name(page)} shows {line!r}"


def test_commands_of_the_readme_run(elsewhere, capfd, monkeypatch):
    """Those in its indented blocks, in their order, on the files that `reticent example` writes."""
    page = ROOT / "README.md"
    lines = [shlex.split(line, comments=True) for line in re.findall(r"^    (reticent .*)$", page.read_text(), re.M)]
    assert lines
    for name_of in ("people.csv", "times.csv"):
        if ["reticent", "example", name_of] not in lines:
            run(["reticent", "example", name_of], 0, page, capfd, monkeypatch)
    for words in lines:
        run(words, 0, page, capfd, monkeypatch)


def run(words, expected, page, capfd, monkeypatch):
    """Run `reticent ...`, with `< file` and `> file` as a shell would; other programs must not be shown."""
    assert words[0] == "reticent", f"{name(page)}: {shlex.join(words)} is not a command of reticent"
    source, words = redirected(words, "<")
    target, words = redirected(words, ">")
    capfd.readouterr()
    with open(source or os.devnull) as given, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", given)
        code = main(words[1:])
    told = capfd.readouterr()
    assert code == expected, f"{name(page)}: {shlex.join(words)} exits with {code}: {told.err}"
    if target:
        Path(target).write_text(told.out)
    return told.out + told.err


def redirected(words, sign):
    if sign not in words:
        return None, words
    at = words.index(sign)
    return words[at + 1], words[:at] + words[at + 2 :]


def anchors(page):
    """Return the anchors of a page, made from its headings as the site makes them."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = {a or b for a, b in ANCHOR.findall(text)}
    for title in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", re.sub(r"[`*]", "", title)).strip().lower()
        found.add(re.sub(r"[\s-]+", "-", plain))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)):
        if ":" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path).resolve()
        assert target.exists(), f"{name(page)} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name(page)} links to {link}; there are {sorted(anchors(target))}"


def test_pages_are_all_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert str(page.relative_to(DOCS)) in text, f"{page.name} is not in mkdocs.yml"


def test_reference_has_every_public_name():
    text = (DOCS / "api" / "index.md").read_text()
    for public in rt.__all__:
        assert f"`rt.{public}`" in text, f"docs/api/index.md does not have rt.{public}"


WHOLE = (
    "domains",
    "losses",
    "gibbs",
    "planning",
    "learners",
    "privacy",
    "trackers",
    "journal",
    "ledger",
)  # packages of which every name is listed


def references():
    """Return the packages that the reference is made from, with the names that are listed of each."""
    text = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.md")))
    found = re.findall(r"^::: ([\w.]+)\n((?: +.*\n)*)", text, flags=re.MULTILINE)
    listed = {package: [] for package, _ in found}
    for package, options in found:
        listed[package] += re.findall(r"^ +- (\w+)$", options, flags=re.MULTILINE)
    return listed


@pytest.mark.parametrize("part", WHOLE)
def test_reference_has_every_name_of_a_package(part):
    package = import_module(f"reticent.{part}")
    assert sorted(references()[package.__name__]) == sorted(package.__all__)


def test_reference_lists_no_name_that_is_gone():
    for package, listed in references().items():
        if listed:
            assert not set(listed) - set(import_module(package).__all__), package


def test_quoted_results_are_committed():
    for page in PAGES:
        for path in re.findall(r"bench/(?:results/)?\w+\.(?:md|py|json)", page.read_text()):
            assert (ROOT / path).exists(), f"{name(page)} quotes {path}"
