"""Work in many pieces: done in parallel, written down as it finishes, never done twice."""

from __future__ import annotations

import pickle
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from importlib import import_module
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from reticent._core._errors import need
from reticent._core._ray import ray_at
from reticent.lab._kept import SOURCES, Kept, plain

CLUSTERS = ("dask", "ray")
BACKENDS = ("loky", "threading", *CLUSTERS)
CONNECT = 10  # seconds that a scheduler has to answer
WAVE = 2  # tasks a worker gets at a time where a backend hands results over only when all are there


def run_all(
    function: Callable[..., Any],
    tasks: Sequence[Mapping[str, Any]],
    *,
    cache: Path | None = None,
    jobs: int = -1,
    backend: str = "loky",
    scheduler: str | None = None,
    report: Callable[[int, Any], None] | None = None,
    sources: Sequence[str] = SOURCES,
) -> list[Any]:
    """Return `function(**task)` for every task, in their order; results must be what JSON can hold.

    `jobs` processes work at a time (-1: as many as there are cores; 1: this one). `backend` "dask" or "ray" sends the
    work to the cluster at `scheduler`, else to the one that the environment names (`DASK_SCHEDULER_ADDRESS`,
    `RAY_ADDRESS`), else to a local one. With a directory as `cache` every result is written there at once and found
    again next time, as long as the task, the file the function is in and the `sources` (files and folders of this
    package that it depends on) are the same: an interrupted run goes on where it stopped. `report(index, result)` is
    called in this process as results arrive, for those found in the cache too.

    A task that raises stops no other: the first error is raised when all others are done and written down.

    >>> run_all(round, [{"number": 2.6}, {"number": 7.2}], jobs=1)
    [3, 7]
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if jobs == 0 or jobs < -1:
        raise ValueError(f"jobs must be a number of processes, or -1 for one on every core, got {jobs!r}")
    if scheduler is not None and backend not in CLUSTERS:
        raise ValueError(f"a scheduler's address is for the backends dask and ray, got {scheduler!r} with {backend}")
    kept = Kept(cache, function, sources)
    found: dict[int, Any] = {}
    for index, task in enumerate(tasks):
        if kept.has(task):
            found[index] = kept.read(task)
            _tell(report, index, found[index])
    missing = [index for index in range(len(tasks)) if index not in found]
    failed: dict[int, Exception] = {}
    pieces = [(index, dict(tasks[index])) for index in missing]
    with warnings.catch_warnings(), closing(_arriving(function, pieces, jobs, backend, scheduler)) as arriving:
        # Who interrupts a run knows that tasks are cancelled.
        warnings.filterwarnings("ignore", message=".*still being processed by the workers")
        for index, result, error in arriving:
            if error is None:
                found[index] = kept.write(tasks[index], result)
                _tell(report, index, found[index])
            else:
                failed[index] = error
    if failed:
        first = min(failed)
        error = failed[first]
        error.add_note(f"{len(failed)} of {len(tasks)} tasks failed, this one first: {dict(tasks[first])}")
        raise error
    return [found[index] for index in range(len(tasks))]


def _tell(report: Callable[[int, Any], None] | None, index: int, result: Any) -> None:
    if report is not None:
        report(index, result)


Piece = tuple[int, dict[str, Any]]
Outcome = tuple[int, Any, Exception | None]


def _arriving(
    function: Callable[..., Any], pieces: list[Piece], jobs: int, backend: str, scheduler: str | None
) -> Generator[Outcome, None, None]:
    """Yield the outcomes of the pieces as they finish."""
    if not pieces:
        return
    if jobs == 1 and backend not in CLUSTERS:
        yield from (_attempt(function, piece) for piece in pieces)
        return
    import joblib

    unordered = backend != "ray"
    threads = {"inner_max_num_threads": 1} if backend == "loky" else {}
    with _cluster(backend, jobs, scheduler), joblib.parallel_config(backend=backend, n_jobs=jobs, **threads):
        if unordered:
            # One task at a time: results of a bundle would arrive together.
            pool = joblib.Parallel(return_as="generator_unordered", batch_size=1)
            yield from pool(joblib.delayed(_attempt)(function, piece) for piece in pieces)
        else:
            size = WAVE * joblib.effective_n_jobs(jobs)
            with joblib.Parallel() as pool:
                for start in range(0, len(pieces), size):
                    yield from pool(joblib.delayed(_attempt)(function, piece) for piece in pieces[start : start + size])


def _attempt(function: Callable[..., Any], piece: Piece) -> Outcome:
    """Do one piece of work, and bring home an error like a result."""
    index, task = piece
    if current_process().name.startswith("LokyProcess"):
        # Ctrl-C reaches workers too; one that dies of it can leave the process that waits for it waiting forever.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _one_thread():
            return index, plain(function(**task)), None
    except Exception as error:
        return index, None, _portable(error)


def _portable(error: Exception) -> Exception:
    """Return an error that can travel between processes."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra keeps to one thread, where the means to ask for it are there."""
    try:
        limits: AbstractContextManager[Any] = import_module("threadpoolctl").threadpool_limits(limits=1)
    except ImportError:
        return nullcontext()
    return limits


@contextmanager
def _cluster(backend: str, jobs: int, scheduler: str | None) -> Iterator[None]:
    """Connect to the cluster a backend works on, start a local one if there is none, and leave it as it was found."""
    if backend == "dask":
        with _dask(jobs, scheduler):
            yield
    elif backend == "ray":
        with _ray(jobs, scheduler):
            yield
    else:
        yield


@contextmanager
def _dask(jobs: int, scheduler: str | None) -> Iterator[None]:
    distributed = need("distributed", "cluster")
    config = need("dask", "cluster").config
    address = scheduler or config.get("scheduler-address", None)
    if address:
        try:
            client = distributed.Client(address, timeout=CONNECT, set_as_default=True)
        except (OSError, TimeoutError) as error:
            raise ValueError(f"no Dask scheduler answers at {address}; start one with `dask scheduler`") from error
        with client:
            yield
        return
    workers = jobs if jobs > 0 else None
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        yield


@contextmanager
def _ray(jobs: int, scheduler: str | None) -> Iterator[None]:
    ray, ours = ray_at(scheduler, jobs if jobs > 0 else None, "cluster")
    try:
        need("ray.util.joblib", "cluster").register_ray()
        yield
    finally:
        if ours:
            ray.shutdown()
