"""What the learner of every key is: a maker and its arguments, as an object and as JSON."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

from reticent._core._random import Seed
from reticent.domains import Domain
from reticent.learners import make
from reticent.losses import Custom, Loss
from reticent.saving import pack, unpack
from reticent.systems._front import lazy_learner, private_learner
from reticent.systems._learner import Learner
from reticent.systems._plan import BasePlan
from reticent.systems._texts import domain_of, domain_text, loss_of, loss_text
from reticent.trackers import PrivateMean, PrivateQuantile, PrivateQuantiles
from reticent.trackers._mean import _BEFORE as _MEAN_BEFORE
from reticent.trackers._mean import _NAMES as _MEAN_NAMES
from reticent.trackers._quantile import _BEFORE as _QUANTILE_BEFORE
from reticent.trackers._quantile import _NAMES as _QUANTILE_NAMES
from reticent.trackers._tracker import named

_PACKED = "part of a specification"  # what it is called in its packed form
_MAKERS: dict[str, Callable[..., Any]] = {
    "private_learner": private_learner,
    "lazy_learner": lazy_learner,
    "make": make,
    "PrivateQuantile": PrivateQuantile,
    "PrivateQuantiles": PrivateQuantiles,
    "PrivateMean": PrivateMean,
}
_ORDERS = {
    PrivateQuantile: (_QUANTILE_NAMES, _QUANTILE_BEFORE),
    PrivateMean: (_MEAN_NAMES, _MEAN_BEFORE),
}


class Spec:
    """A learner or tracker to be made, once for each key: `Spec(rt.private_learner, loss, domain, epsilon=1.0, ...)`.

    `maker` is `rt.private_learner`, `rt.lazy_learner`, `rt.PrivateQuantile`, `rt.PrivateQuantiles`, `rt.PrivateMean`,
    or `rt.make` with a plan and a loss; what follows are its arguments, but for the seed. The plan is made once.
    `to_json` and `from_json` write domains and losses as the command line does; `Custom` losses hold functions, which
    no text can, and are refused.

    >>> import reticent as rt
    >>> spec = Spec(rt.private_learner, rt.Pinball(0.95), rt.Interval(0, 1000), epsilon=1.0, delta=1e-6)
    >>> spec.to_json()["loss"], spec.to_json()["domain"], spec.columns
    ('pinball:0.95', 'interval:0.0:1000.0', ('features', 'targets'))
    >>> Spec.from_json(spec.to_json()) == spec, spec.new(seed=1).rounds
    (True, 0)
    """

    def __init__(self, maker: Callable[..., Any], *args: Any, **options: Any) -> None:
        """Take what makes a learner, and its arguments."""
        names = [name for name, known in _MAKERS.items() if known is maker]
        if not names:
            wanted = ", ".join(f"rt.{name}" for name in _MAKERS)
            raise ValueError(f"maker must be one of {wanted}, got {maker!r}")
        self.learner = names[0]
        self._maker = maker
        self.options = _arguments(maker, args, options)
        if "seed" in self.options:
            raise ValueError("seed must be given to the fleet, which gives every key its own, got it in the spec")
        if self.options.get("like") is not None:
            raise ValueError(
                "like must be None in a fleet, got data: choose a plan on it, and give rt.make and the plan"
            )
        if isinstance(self.options.get("loss"), Custom):
            raise ValueError(
                f"loss must be one that a store can hold, got {self.options['loss']!r}, which has functions; use "
                "another of reticent.losses"
            )
        for name in ("max_rows", "clock"):  # what is planned for rows of persons, or for blocks that a caller ends
            if getattr(self.plan, name, None):
                raise ValueError(
                    f"{name} must be left out in a fleet, got {getattr(self.plan, name)!r}: it hands on rows, and "
                    "neither whose they are nor when a block ends; take single learners, or rt.Fleet(..., max_keys=)"
                )

    @cached_property
    def _first(self) -> Any:
        """One that is never given a round: it has the plan."""
        return self._maker(**self.options, seed=0)

    @property
    def plan(self) -> Any:
        """What is promised of every key; made once."""
        return self._first.plan

    @property
    def loss(self) -> Loss | None:
        """The loss of a learner; None for a tracker."""
        return self._first.loss if isinstance(self._first, Learner) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what `observe` takes, one array each: those of the loss, or the values of a tracker."""
        return ("values",) if self.loss is None else self.loss.data

    @property
    def on_steep(self) -> str:
        """What is done with rounds that are too steep, for learners."""
        return str(self._first._on_steep)

    def new(self, seed: Seed = None) -> Any:
        """Return a single learner or tracker at its first decision."""
        if self.loss is None:
            return self._maker(**self.options, seed=seed)
        return make(self.plan, self.loss, seed, on_steep=self.on_steep)

    def to_json(self) -> dict[str, Any]:
        """Return the specification as plain values for JSON."""
        return {"learner": self.learner} | {name: _plain(name, value) for name, value in self.options.items()}

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Spec:
        """Return the specification that `to_json` wrote; names that are not known, or missing, are refused.

        >>> Spec.from_json({"learner": "PrivateMean", "low": 0, "high": 1, "epsilon": 1.0}).columns
        ('values',)
        """
        if not isinstance(written, dict) or not isinstance(written.get("learner"), str):
            raise ValueError(f'a specification must be an object with "learner", got {written!r}')
        rest = dict(written)
        name = rest.pop("learner")
        if name not in _MAKERS:
            raise ValueError(f"learner must be one of {', '.join(_MAKERS)}, got {name!r}")
        try:
            return cls(_MAKERS[name], **{key: _restored(key, value) for key, value in rest.items()})
        except TypeError as error:
            raise ValueError(f"these are not the arguments of {name}: {error}") from None

    def __eq__(self, other: object) -> bool:
        """Say whether `other` makes the same learners."""
        return isinstance(other, Spec) and (self.learner, self.options) == (other.learner, other.options)

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.learner)

    def __repr__(self) -> str:
        """Say what is made."""
        return f"Spec(rt.{self.learner}, {', '.join(f'{name}={value!r}' for name, value in self.options.items())})"


def _arguments(maker: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by name, those that are left out or None not at all."""
    if maker in _ORDERS:
        found = named(*_ORDERS[maker], args, options)
        inspect.signature(maker._set_up).bind(None, **found)  # type: ignore[attr-defined]
    elif maker is make:
        if len(args) > 2:
            raise TypeError(f"rt.make takes a plan and a loss, the rest by name, got {len(args)} arguments")
        found = dict(zip(("plan", "loss"), args, strict=False)) | options
        odd = found.keys() - {"plan", "loss", "on_steep", "seed"}
        if odd or not {"plan", "loss"} <= found.keys():
            raise TypeError(f"rt.make takes plan, loss and on_steep in a spec, got {sorted(found)}")
    else:
        found = inspect.signature(maker).bind(*args, **options).arguments
    return {name: _settled(value) for name, value in found.items() if value is not None}


def _settled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# Plain values: domains and losses in words where they have some, packed as in saved files where not.


def _plain(name: str, value: Any) -> Any:
    text = domain_text(value) if isinstance(value, Domain) else loss_text(value) if isinstance(value, Loss) else None
    if text is not None:
        return text
    if isinstance(value, Domain | Loss | BasePlan):
        return {"packed": base64.b64encode(b"".join(pack(_PACKED, value))).decode("ascii")}
    if isinstance(value, tuple):
        return [_plain(name, part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{name} must be a number, a text, a domain, a loss or a plan to be written, got {value!r}")


def _restored(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() != {"packed"} or not isinstance(value["packed"], str):
            raise ValueError(f'{name} must be a value, or an object with "packed" alone, got {sorted(value)}')
        try:
            data = base64.b64decode(value["packed"], validate=True)
        except ValueError:
            raise ValueError(f"{name} is not packed as to_json packs it: it is no base64") from None
        return unpack(_PACKED, data, name, check=_check_part)
    if isinstance(value, list):
        return tuple(_restored(name, part) for part in value)
    if name == "domain" and isinstance(value, str):
        return domain_of(value)
    if name == "loss" and isinstance(value, str):
        return loss_of(value)
    return value


def _check_part(found: Any) -> None:
    if isinstance(found, BasePlan):
        found.check_as_written()
    elif not isinstance(found, Domain | Loss):
        raise ValueError(f"it holds a {type(found).__name__}, not a domain, a loss or a plan")
