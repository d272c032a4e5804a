"""Every citation of docs/theory leads to a statement there, and every statement has its claim, proof and tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THEORY = ROOT / "docs" / "theory"
PAGES = sorted(page for page in THEORY.glob("*.md") if page.stem != "index")
EXPECTED = ["W", "Z", "C", *(f"S{i}" for i in range(1, 12)), *(f"P{i}" for i in range(10))]
EXPECTED += [*(f"Q{i}" for i in range(17)), *(f"R{i}" for i in range(1, 17))]
ALGORITHMS = {"P0"}  # what is done, and in which letters: nothing is claimed, so nothing is proved

HEADING = re.compile(r"^## ([A-Z]\d*)\. .*$", re.MULTILINE)
FORMULA = re.compile(r"\$\$.*?\$\$|(?<![\\$])\$[^$]+\$|`[^`]*`", re.DOTALL)
MENTION = re.compile(r"docs/theory(?:\.md|/\w+\.md)?`?,\s+")
NAME = r"[A-Z]\d{1,2}[a-z]?"
CITED = re.compile(rf"\b(?:({NAME})(?: ?(?:to|-) ?)({NAME})|({NAME}))\b")
LONE = re.compile(r"[WZC]\b(?:\(([a-z])\))?")
LINK = re.compile(r"\[([A-Z]\d{0,2})([a-z]?)\]\([\w./]*#([\w-]+)\)")
REFERENCE = re.compile(r"\b([SPQR]\d{1,2}[a-z]?)\b(?:\]\([^)]*\))?(?:\(([a-z])\))?")
TEST_FILE = re.compile(r"\btests/[\w/]+\.\w+")


def named(path):
    return str(path.relative_to(ROOT))


def statements(text):
    """Return the statements of a page: number and text, from its heading to the next one."""
    parts = HEADING.split(text)
    return dict(zip(parts[1::2], (re.split(r"^## ", part, flags=re.MULTILINE)[0] for part in parts[2::2]), strict=True))


@pytest.fixture(scope="module")
def proved():
    """All statements, with the page each is on."""
    return {number: (page, body) for page in PAGES for number, body in statements(page.read_text()).items()}


def texts():
    """Yield the files that may cite, with their text; a comment or string that goes on in the next line is joined."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder, endings in (("src", ("py",)), ("tests", ("py", "c")), ("bench", ("py", "md")), ("docs", ("md",))):
        files += [path for ending in endings for path in sorted((ROOT / folder).rglob(f"*.{ending}"))]
    for path in files:
        if path != Path(__file__).resolve():
            yield path, joined(path.read_text())


def joined(text):
    return re.sub(r"[\"']?[ \t]*\n[ \t]*(?:# |[rf]?[\"'](?![\"']))?", " ", text)


def sentence(text):
    """Return what belongs to a citation: up to the end of its sentence or of the parentheses that it is in."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or sign == '"' or (depth == 0 and sign in ".;" and text[at + 1 : at + 2] in ("", " ")):
            return text[:at]
    return text


def citations(text):
    """Return the numbers that a text cites from docs/theory, ranges spelled out."""
    found = []
    for mention in MENTION.finditer(text):
        rest = sentence(text[mention.end() : mention.end() + 400])
        if lone := LONE.match(rest):
            found.append(lone[0].replace("(", "").replace(")", ""))
        for first, last, one in CITED.findall(rest):
            found += between(first, last) if first else [one]
    return found


def between(first, last):
    """Return P0, P1, ..., P5 for P0 and P5; R5a, ..., R5d for R5a and R5d."""
    if first[0] != last[0] or first[-1].isalpha() or last[-1].isalpha():
        return [first, last]
    return [f"{first[0]}{number}" for number in range(int(first[1:]), int(last[1:]) + 1)]


def unresolved(cited, proved):
    """Return why a citation leads nowhere, or nothing."""
    number, letter = (cited[:-1], cited[-1]) if cited[-1].islower() else (cited, "")
    if number not in proved:
        return f"there is no statement {number} in docs/theory"
    page, body = proved[number]
    if letter and f"({letter})" not in FORMULA.sub("", body):
        return f"{number} in {named(page)} has no part ({letter})"
    return ""


def test_statements_are_all_there_once(proved):
    seen = [number for page in PAGES for number in HEADING.findall(page.read_text())]
    assert sorted(seen) == sorted(EXPECTED)


def test_citations_resolve(proved):
    cited = [(path, number) for path, text in texts() for number in citations(text)]
    assert len(cited) > 150, "the citations of the code are not found any more"
    lost = [f"{named(path)} cites {number}: {why}" for path, number in cited if (why := unresolved(number, proved))]
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("page", [*PAGES, THEORY / "index.md"], ids=named)
def test_references_between_statements_resolve(page, proved):
    prose = FORMULA.sub("", page.read_text())
    cited = sorted({number + letter for number, letter in REFERENCE.findall(prose)})
    lost = [f"{named(page)} mentions {number}: {why}" for number in cited if (why := unresolved(number, proved))]
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=named)
def test_links_go_to_the_statement_they_name(page):
    links = LINK.findall(page.read_text())
    crossed = [
        f"[{number}{letter}] to #{anchor}" for number, letter, anchor in links if not leads(number, letter, anchor)
    ]
    assert not crossed, f"{named(page)}: {', '.join(crossed)}"


def leads(number, letter, anchor):
    """Tell whether an anchor is that of a statement, or of the part of it that is cited."""
    return anchor.split("-")[0] in {number.lower(), letter or number.lower()}


@pytest.mark.parametrize("page", PAGES, ids=named)
@pytest.mark.parametrize("part", ["Claim", "Proof", "Checked by"])
def test_statements_have_their_parts(page, part):
    found = {number: body for number, body in statements(page.read_text()).items() if number not in ALGORITHMS}
    lacking = [number for number, body in found.items() if not re.search(rf"\*{part}\b", body)]
    assert not lacking, f"{named(page)}: no **{part}** in {', '.join(lacking)}"


@pytest.mark.parametrize("page", [*PAGES, THEORY / "index.md"], ids=named)
def test_named_test_files_exist(page):
    lost = sorted({path for path in TEST_FILE.findall(page.read_text()) if not (ROOT / path).exists()})
    assert not lost, f"{named(page)} names tests that are not there: {', '.join(lost)}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the chance (docs/theory, P5).", ["P5"]),
        ("of docs/theory.md, P0 to P3, and", ["P0", "P1", "P2", "P3"]),
        ("(docs/theory, S8-S10)", ["S8", "S9", "S10"]),
        ("(docs/theory, Q4 and Q6) as in P9", ["Q4", "Q6"]),
        ("docs/theory, R5h for linear losses, P4g for others. R1", ["R5h", "P4g"]),
        ("(docs/theory, P4: clipping (P4a), then P6)", ["P4", "P4a", "P6"]),
        ("once it is spent (docs/theory,\n    R4). For losses", ["R4"]),
        ("# as in docs/theory,\n    # Q7 and P8", ["Q7", "P8"]),
        ('"as certified (docs/theory, "\n    "P9)"', ["P9"]),
        ("by docs/theory, C(b), and W", ["Cb"]),
        ("a section of docs/theory.md, with a test", []),
    ],
)
def test_citations_are_read(text, expected):
    assert citations(joined(text)) == expected


@pytest.mark.parametrize("made_up", ["S12", "P10", "Q99", "X1", "P5z", "R5q", "Z3"])
def test_made_up_citations_are_reported(made_up, proved):
    assert [number for number in citations(f"(docs/theory, {made_up})") if unresolved(number, proved)] == [made_up]
