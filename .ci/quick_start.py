"""Try an installed wheel: does everything travel, does the quick start of README.md run, does the command line answer?

    python .ci/quick_start.py ENVIRONMENT

ENVIRONMENT is a virtual environment with the wheel in it. All runs in an empty folder, and sees nothing of this tree.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
PATIENCE = 1200  # seconds; kernels are compiled on first use


def main() -> None:
    """Check the environment that is named on the command line."""
    if len(sys.argv) != 2:
        sys.exit(f"name one environment, as in: python .ci/quick_start.py ENVIRONMENT (not {sys.argv[1:]})")
    environment = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as empty:
        package = _package(environment, empty)
        _check_files(package)
        _check_quick_start(environment, empty)
        _check_command(environment, empty)


def _run(words: list[str | Path], folder: str) -> str:
    """Run a program in a folder; return what it prints, or end with what it said."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _package(environment: Path, empty: str) -> Path:
    """Return where `import reticent` comes from; it must be inside the environment."""
    code = "import reticent; [getattr(reticent, name) for name in reticent.__all__]; print(reticent.__file__)"
    package = Path(_run([_python(environment), "-I", "-c", code], empty).strip()).resolve().parent
    if environment not in package.parents:
        sys.exit(f"reticent comes from {package}, which is outside {environment}; install the wheel there")
    print(f"import reticent: every public name is there, from {package.relative_to(environment)}")
    return package


def _check_files(package: Path) -> None:
    """Compare the files of the installed package with those of the source tree."""
    here, there = _files(HERE / "src" / "reticent"), _files(package)
    if missing := sorted(here - there):
        sys.exit(f"the wheel lacks {missing}; name them under [tool.setuptools.package-data]")
    if extra := sorted(there - here):
        sys.exit(f"the wheel has {extra}, which are not in src; remove build and *.egg-info, and build again")
    print(f"{len(there)} files travel, of which other than Python: {', '.join(_others(there))}")


def _files(folder: Path) -> set[str]:
    every = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in every}


def _others(names: set[str]) -> list[str]:
    return sorted(name for name in names if not name.endswith(".py"))


def _check_quick_start(environment: Path, empty: str) -> None:
    """Run the first block of Python in README.md, in a folder that has nothing else in it."""
    found = BLOCK.search((HERE / "README.md").read_text(encoding="utf-8"))
    if found is None:
        sys.exit("README.md has no block that begins with ```python; the quick start is the first of them")
    script = Path(empty) / "quick_start.py"
    script.write_text(found[1], encoding="utf-8")
    printed = _run([_python(environment), "-I", script], empty)
    print(f"the quick start runs, and prints {len(printed.splitlines())} lines")


def _check_command(environment: Path, empty: str) -> None:
    """Ask the command line for its help; without the extra `lab` it must say what to install."""
    command = environment / "bin" / "reticent"
    find = "import importlib.util as u; print(all(map(u.find_spec, ('typer', 'rich'))))"
    if _run([_python(environment), "-I", "-c", find], empty).strip() == "True":
        if "Usage" not in (printed := _run([command, "--help"], empty)):
            sys.exit(f"reticent --help does not say how it is used, but:\n{printed}")
        print("reticent --help answers")
        return
    done = subprocess.run([command, "--help"], cwd=empty, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 2 or "lab" not in done.stderr or "Traceback" in done.stderr:
        sys.exit(f"without its extra, reticent --help ended with {done.returncode} and said:\n{done.stderr}")
    print("reticent --help, without its extra, says what to install")


if __name__ == "__main__":
    main()
