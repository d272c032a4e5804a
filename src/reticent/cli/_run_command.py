"""One run with everything decided: rounds through the learner, decisions out, and what is told and kept of it."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.cli._run_loop import Outcome
    from reticent.cli._run_source import Problem
    from reticent.lab import Best, Recorder
    from reticent.learners import Learner
    from reticent.planning._goal import AnyPlan


class Command:
    """A run with everything decided."""

    def __init__(
        self,
        problem: Problem,
        plan: AnyPlan,
        system: str,
        switches: int | None,
        seed: int | None,
        on_steep: str,
        skip: bool,
        most: int,
        json: bool,
        quiet: bool,
    ) -> None:
        self.problem, self.plan, self.system, self.seed = problem, plan, system, seed
        self.switches = switches
        self.on_steep, self.skip, self.most = on_steep, skip, most
        self.json, self.quiet = json, quiet

    def go(self, out: Path | None) -> tuple[Learner, Recorder, Outcome]:
        """Run; decisions are written on the way."""
        from reticent.cli._run_loop import go
        from reticent.cli._run_write import Decisions
        from reticent.cli._show import progress, say
        from reticent.lab import Recorder
        from reticent.learners import make

        problem = self.problem
        learner, recorder = make(self.plan, problem.loss, self.seed, on_steep=self.on_steep), Recorder(problem.loss)
        if not self.quiet:
            for note in problem.notes:
                say(note)
        with _opened(out) as file, progress(1.0, "running", quiet=self.quiet) as step:
            decisions = Decisions(file, problem.decision, self.json)
            decisions.first(learner.decision)

            def taken(trace: Any) -> None:
                decisions.add(trace)
                recorder.add(trace)

            outcome = go(
                learner,
                problem,
                horizon=self.plan.horizon,
                most=self.most,
                on_steep=self.on_steep,
                skip=self.skip,
                taken=taken,
                step=step,
            )
        if not learner.rounds and outcome.stopped is None and not outcome.interrupted:
            bad = f", only {problem.source.skipped:,} bad ones" if problem.source.skipped else ""
            outcome.stopped = ValueError(f"{problem.source.name} has no rows to run on{bad}")
        return learner, recorder, outcome

    def hindsight(self, learner: Learner, outcome: Outcome) -> Best | None:
        """Return the best fixed decision for the rounds that were taken in; none if Ctrl-C ends the search for it."""
        from reticent.cli._show import busy
        from reticent.lab import hindsight

        try:
            with busy("looking for the best fixed decision in hindsight"):
                return hindsight(self.problem.stream(learner.rounds))
        except KeyboardInterrupt:
            outcome.interrupted = True
            return None

    def notes(self, learner: Learner, outcome: Outcome) -> list[str]:
        """Return what a reader of the numbers has to know."""
        from reticent.cli._run_source import scaled_down

        steep = outcome.steep if self.on_steep == "clip" else 0
        return self.problem.notes + scaled_down(steep, learner.rounds, self.problem.lipschitz)

    def tell(self, learner: Learner, recorder: Recorder, outcome: Outcome, best: Best | None) -> None:
        """Say how it went: the last line of JSON, or words on standard error."""
        from json import dumps

        from reticent.cli._run_summary import in_words, summary
        from reticent.cli._show import plain, say

        notes = self.notes(learner, outcome)
        found = summary(learner, self.system, self.problem, outcome, recorder, best, self.seed, notes)
        if self.json:
            print(dumps({"summary": plain(found)}), flush=True)
        elif not self.quiet:
            say(in_words(found, self.on_steep == "clip"))
            if outcome.interrupted:
                say("interrupted; the decisions so far are written")

    def keep(
        self,
        learner: Learner,
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

        if (save is None and report is None) or not learner.rounds:
            return
        plan = self.plan
        facts = plan_facts(plan, spent=plan.horizon is not None and plan.epsilon is not None)
        done = recorder.run(self.system, self.seed, facts, outcome.seconds)
        if best is not None:
            done = replace(done, regret=done.total - best.value + best.gap)
        goal = {"epsilon": plan.epsilon, "delta": plan.delta, "max_switches": self.switches}
        stream = stream_facts(self.problem.stream(learner.rounds))
        title = f"{self.system} on {stream['name']}"
        study = Study(title, "run", stream, goal, [done], best, command=words, notes=self.notes(learner, outcome))
        if save is not None:
            study.save(save)
            say(f"Study: {save}")
        if report is not None:
            from reticent.lab.report import write_report

            with busy("writing the report"):
                say(f"Report: {write_report(study, report)}")


@contextlib.contextmanager
def _opened(out: Path | None) -> Any:
    """Give the file that decisions go to; standard output stays open."""
    if out is None:
        yield sys.stdout
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        yield file
