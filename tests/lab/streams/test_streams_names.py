"""Names of streams and their settings: read, refused in one sentence, listed without loading anything."""

import subprocess
import sys

import pytest

from reticent._core._errors import MissingExtra
from reticent.lab import streams


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("shutle", "no stream is called 'shutle'; did you mean shuttle"),
        ("", "no stream is called ''; there are randhie"),
        ("iid:colour=red", "the stream iid has no setting 'colour'; there are rounds, dim"),
        ("iid:dims=3", "did you mean dim"),
        ("phishing:dim=3", "the stream phishing has no setting 'dim'; there are rounds"),
        ("iid:dim", "must be given as name=value, got 'dim'"),
        ("iid:dim=", "must be given as name=value"),
        ("iid:dim=2,dim=3", "got dim twice"),
        ("iid:dim=0", "dim must be a whole number from 1 to 10000, got '0'"),
        ("iid:dim=2.5", "dim must be a whole number"),
        ("iid:rounds=many", "rounds must be a whole number"),
        ("iid:noise=nan", "noise must be a number from 0"),
        ("iid:seed=-1", "seed must be a whole number from 0"),
        ("iid:loss=pinball", "loss must be one of linear, logistic, hinge, absolute, got 'pinball'"),
        ("phishing:rounds=1251", "rounds must be a whole number from 1 to 1250"),
        (3, "a stream is named by text"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(spec, words):
    with pytest.raises(ValueError) as found:
        streams.get(spec)
    assert words in str(found.value)
    assert "\n" not in str(found.value)


def test_settings_are_read():
    stream = streams.get(" drifting : rounds = 1e4 , dim=3 ")
    assert (stream.rounds, stream.domain.dim) == (10_000, 3)
    assert streams.get("iid:rounds=100000") == streams.get("iid")
    assert streams.get("shuttle:rounds=10").rounds == 10
    assert streams.settings("phishing") == {"rounds": "1250"}


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("phishing", "river", "streams"),
        ("nyse_o", "universal", "streams"),
        ("temperatures", "vega_datasets", "streams"),
        ("randhie", "statsmodels", "lab"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package}.*reticent\[{extra}\]"):
        streams.get(name)


def test_describing_loads_nothing_and_needs_no_extra():
    code = (
        "import sys\n"
        "heavy = ('pandas', 'river', 'statsmodels', 'universal', 'vega_datasets', 'sklearn')\n"
        "for name in heavy: sys.modules[name] = None\n"
        "from reticent.lab import streams\n"
        "from reticent.lab.streams import _real\n"
        "assert {about.name for about in streams.describe()} == set(streams.names())\n"
        "assert _real.table.cache_info().currsize == 0\n"
        "assert {about.extra for about in streams.describe()} == {'', 'lab', 'streams'}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_reading_imports_no_package_of_data():
    code = (
        "import sys\n"
        "from reticent.lab import streams\n"
        "for name in ('phishing', 'djia', 'temperatures', 'fair'): streams.get(name).block()\n"
        "assert not {'river', 'universal', 'vega_datasets', 'statsmodels'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_package_without_the_file_is_told(monkeypatch):
    from reticent.lab.streams import _real

    with pytest.raises(ValueError, match=r"river must have the file datasets/none\.csv"):
        _real.located("river", "datasets", "none.csv")
