"""Cached kernels never outlive the sources they were compiled from."""

import os

from reticent._core import _kernel


def test_a_changed_source_drops_every_cached_kernel(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "part" / "__pycache__").mkdir(parents=True)
    (package / "__pycache__").mkdir()
    source = package / "part" / "kernels.py"
    source.write_text("from reticent._core._kernel import kernel\n")
    plain = package / "part" / "plain.py"
    plain.write_text("x = 1\n")
    monkeypatch.setattr(_kernel, "_PACKAGE", package)
    monkeypatch.setattr(_kernel, "_MARK", package / "__pycache__" / "kernels.sha256")
    cached = [package / "part" / "__pycache__" / name for name in ("f.nbi", "f.1.nbc")]
    assert _kernel.drop_stale_cache()
    for file in cached:
        file.write_text("compiled")
    assert not _kernel.drop_stale_cache()  # nothing changed: the cache stays
    os.utime(plain, ns=(1, 1))
    assert not _kernel.drop_stale_cache()  # no kernel comes from there
    assert all(file.exists() for file in cached)
    os.utime(source, ns=(1, 1))
    assert _kernel.drop_stale_cache()
    assert not any(file.exists() for file in cached)
