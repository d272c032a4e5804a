"""A run with everything decided: it goes through the rounds, tells how that went, and keeps what was asked for."""

from __future__ import annotations

import contextlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.cli._run_go import Past, Strokes, go
from reticent.cli._run_report import Decisions, as_json, ended, in_words, scorer_of, summary
from reticent.cli._run_source import FileSource
from reticent.lab._kept import about

if TYPE_CHECKING:
    from reticent.cli._interrupts import Interrupts
    from reticent.cli._run_go import Outcome
    from reticent.cli._run_source import Problem
    from reticent.cli._units import Clock
    from reticent.lab import Best, Recorder
    from reticent.learners import Learner
    from reticent.planning import BasePlan


class Command:
    """A run with everything decided."""

    def __init__(
        self,
        problem: Problem,
        plan: BasePlan,
        system: str,
        switches: int | None,
        seed: int | None,
        on_steep: str,
        most: int,
        json: bool,
        quiet: bool,
        interrupts: Interrupts,
        journal: Path | None,
        resume: bool,
    ) -> None:
        self.problem, self.plan, self.system, self.seed = problem, plan, system, seed
        self.switches = switches
        self.on_steep, self.most = on_steep, most
        self.json, self.quiet = json, quiet
        self.interrupts = interrupts
        self.journal, self.resume = journal, resume

    @property
    def clock(self) -> Clock | None:
        """The clock that ends blocks; None where they are counted in rounds."""
        source = self.problem.source
        return source.clock if isinstance(source, FileSource) else None

    def go(self, out: Path | None, files: ExitStack) -> tuple[Learner, Recorder, Outcome]:
        """Run; decisions are written on the way. What stays open until everything is told is left to `files`."""
        from reticent.cli._show import progress
        from reticent.lab import Recorder

        problem = self.problem
        (learner, past), recorder = self._learner(files), Recorder(problem.loss)
        clock = self.clock
        outcome: Outcome | None = None
        try:
            with _opened(out) as file, progress(1.0, "running", quiet=self.quiet) as step:
                kept = as_json(out, self.json)
                decisions = Decisions(file, _name(out), problem.decision, kept, "round" if clock is None else "time")
                strokes = None if clock is None else Strokes(learner, clock, decisions.since)
                if strokes is None:
                    decisions.first(learner.decision if past is None else past.first)

                def taken(trace: Any) -> None:
                    recorder.add(trace)  # first: what was taken in counts, whether or not it can be written
                    if strokes is None:  # on a clock decisions change between two rounds, whose numbers are not public
                        decisions.add(trace)

                outcome = go(
                    learner,
                    problem,
                    self.interrupts,
                    horizon=self.plan.horizon,
                    most=self.most,
                    taken=taken,
                    step=step,
                    past=past,
                    strokes=strokes,
                )
        except OSError as error:
            # What could not be written is met again when the file is closed; the rounds before it are not lost.
            if outcome is None:
                raise
            outcome.stopped = outcome.stopped or error
        if not recorder.rounds and outcome.stopped is None and not outcome.interrupted:
            found = [(outcome.bad, "bad"), (outcome.steep, "too steep")]
            only = " and ".join(f"{count:,} {what} ones" for count, what in found if count)
            outcome.stopped = ValueError(f"{problem.source.name} has no rows to run on{only and f', only {only}'}")
        return learner, recorder, outcome

    def _learner(self, files: ExitStack) -> tuple[Any, Past | None]:
        """Return the learner, from a journal if there is one, with the rounds that it has taken in before."""
        from reticent.learners import make

        loss = self.problem.loss
        how = {"on_steep": self.on_steep}
        if self.plan.max_rows is not None:
            how["on_bad"] = "empty"  # a row of nobody is a round of which nothing is learned
        if self.journal is None:
            return make(self.plan, loss, self.seed, **how), None
        from reticent.journal import Journal, Reader

        # The reader is for the rounds before: the journal itself goes on from where it is.
        reader = files.enter_context(Reader(self.journal)) if self.resume else None
        journal = files.enter_context(Journal(self.journal))
        learner = journal.open_or_start(self.plan, loss, self.seed, **how)
        if reader is None:
            return learner, None
        return learner, files.enter_context(contextlib.closing(Past(reader, self.problem, self.on_steep, learner)))

    def hindsight(self, recorder: Recorder, outcome: Outcome) -> Best | None:
        """Return the best fixed decision for the rounds that were taken in; none if Ctrl-C ends the search for it."""
        from reticent.cli._show import busy
        from reticent.lab import hindsight

        try:
            with self.interrupts.waiting(), busy("looking for the best fixed decision in hindsight"):
                return hindsight(self.problem.stream(recorder.rounds))
        except KeyboardInterrupt:
            outcome.interrupted = True
            return None

    def notes(self, recorder: Recorder, outcome: Outcome) -> list[str]:
        """Return what a reader of the numbers has to know."""
        from reticent.cli._run_source import left_out, scaled_down

        steep = outcome.steep if self.on_steep == "clip" else 0
        notes = self.problem.notes + left_out(outcome.bad)
        return notes + scaled_down(steep, recorder.rounds, self.problem.lipschitz) + ended(recorder.rounds, outcome)

    def tell(self, learner: Learner, recorder: Recorder, outcome: Outcome, best: Best | None) -> None:
        """Say how it went: the last line of JSON, or words on standard error."""
        from json import dumps

        from reticent.cli._show import plain, say

        notes = self.notes(recorder, outcome)
        found = summary(learner, self.system, self.problem, outcome, recorder, best, self.seed, notes)
        if self.json and not outcome.unread:
            try:
                print(dumps({"summary": plain(found)}), flush=True)
                return
            except BrokenPipeError as error:
                outcome.stopped = outcome.stopped or error
        if not self.quiet:
            say(in_words(found, self.on_steep == "clip"))
            if outcome.interrupted:
                say("interrupted; the decisions so far are written" + self._way_on)
            if outcome.unread:
                say("stopped: whoever read the output has gone")

    @property
    def _way_on(self) -> str:
        return "" if self.journal is None else "; the same command with --resume goes on"

    def publish(self, learner: Learner, recorder: Recorder, outcome: Outcome, scorer: Path | None) -> None:
        """Write the last decision as a score that others can apply."""
        from reticent.cli._show import say
        from reticent.lab._kept import write_whole

        if scorer is None:
            return
        found = scorer_of(learner, self.problem, outcome.decision.tolist(), recorder.rounds)
        assert found is not None  # checked before the run
        write_whole(scorer, found.to_json())
        say(f"Scorer: {scorer}")

    def keep(
        self,
        recorder: Recorder,
        outcome: Outcome,
        best: Best | None,
        save: Path | None,
        report: Path | None,
        words: str,
    ) -> None:
        """Write the study and the report that were asked for, of what was done."""
        from dataclasses import replace

        from reticent.cli._show import busy, say
        from reticent.lab import Study, plan_facts, stream_facts

        if (save is None and report is None) or not recorder.rounds:
            return
        plan = self.plan
        facts = plan_facts(plan, spent=plan.horizon is not None and plan.epsilon is not None)
        done = recorder.run(self.system, self.seed, facts, outcome.seconds)
        if best is not None:
            done = replace(done, regret=done.total - best.value + best.gap)
        goal = {"epsilon": plan.epsilon, "delta": plan.delta, "max_switches": self.switches}
        stream = stream_facts(self.problem.stream(recorder.rounds))
        title = f"{self.system} on {stream['name']}"
        study = Study(title, "run", stream, goal, [done], best, command=words, notes=self.notes(recorder, outcome))
        if save is not None:
            study.save(save)
            say(f"Study: {save}")
        if report is not None:
            from reticent.lab.report import write_report

            with busy("writing the report"):
                say(f"Report: {write_report(study, report)}")


def _name(out: Path | None) -> str:
    return "standard output" if out is None else str(out)


@contextlib.contextmanager
def _opened(out: Path | None) -> Any:
    """Give the file that decisions go to; standard output stays open."""
    if out is None:
        yield sys.stdout
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with about(out), out.open("w", encoding="utf-8", newline="") as file:
        yield file
