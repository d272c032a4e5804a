"""The description of the API for machines: parameters, bodies with examples, and every answer there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reticent.service import _answers as answers
from reticent.service import _bodies as bodies
from reticent.service._problems import KINDS, MEDIA

_REF = "#/components/schemas/"
STRUCTURES = (
    *(bodies.NewLearner, bodies.NewFleet, bodies.Rounds, bodies.KeyedRounds, bodies.NewKey),
    *(answers.Resource, answers.Learners, answers.Fleets, answers.PlanFacts, answers.Receipt, answers.Shown),
    *(answers.History, answers.Spent, answers.KeyPage, answers.Books, answers.Grants, answers.MadeKey, answers.Me),
    *(answers.Health, answers.ProblemBody),
)

EXAMPLES: dict[str, dict[str, Any]] = {
    "NewLearner": {
        "a private quantile": {
            "id": "p95",
            "name": "Latency, 95th percentile",
            "spec": {"learner": "PrivateQuantile", "level": 0.95, "low": 0, "high": 1000, "epsilon": 1.0},
        },
        "a private scorer": {
            "id": "scorer",
            "spec": {
                "learner": "private_learner",
                "loss": "logistic",
                "domain": "ball:2:8",
                "epsilon": 1.0,
                "delta": 1e-6,
            },
            "feedback_lag": 100,
        },
        "few changes, no privacy": {
            "id": "replicas",
            "spec": {"learner": "lazy_learner", "loss": "pinball:0.9", "domain": "interval:0:50", "max_switches": 20},
        },
    },
    "NewFleet": {
        "a quantile for every region": {
            "id": "regions",
            "spec": {"learner": "PrivateQuantile", "level": 0.95, "low": 0, "high": 1000, "epsilon": 1.0},
            "max_keys": 3,
        }
    },
    "Rounds": {
        "columns": {"columns": {"values": [212.5, 180.0, 260.1]}},
        "rows": {"rows": [{"features": [0.3, -0.1], "targets": 1}]},
        "features first": {"round": "visit-17", "open": [0.3, -0.1]},
        "and the target later": {"round": "visit-17", "close": 1},
    },
    "KeyedRounds": {"columns": {"keys": ["eu", "us"], "columns": {"values": [212.5, 180.0]}}},
    "NewKey": {"for one program": {"name": "checkout", "scopes": ["read"], "only": ["p95"], "days": 90}},
}


def schemas() -> dict[str, Any]:
    """Return all structures as JSON schemas, by name."""
    return dict(msgspec.json.schema_components(STRUCTURES, ref_template=_REF + "{name}")[1])


def document(operations: Sequence[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the whole description, from methods, paths and what `operation` says of each."""
    paths: dict[str, Any] = {}
    for method, path, about in operations:
        name = f"{method.lower()}{path.replace('/v1', '').replace('{', '').replace('}', '').replace('/', '_')}"
        paths.setdefault(path, {})[method.lower()] = {"operationId": name, **about}
    told = "Private and lazy decisions. Only decisions, their changes and the epsilon spent leave it."
    key = {"type": "http", "scheme": "bearer", "description": "An API key, rt_…"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "reticent", "version": "1", "description": told},
        "paths": paths,
        "components": {"schemas": schemas(), "securitySchemes": {"key": key}},
    }


def parameter(name: str, place: str, schema: dict[str, Any], about: str, *, needed: bool = False) -> dict[str, Any]:
    """Return the description of one parameter."""
    return {"name": name, "in": place, "required": needed or place == "path", "schema": schema, "description": about}


ID = parameter("id", "path", {"type": "string", "pattern": bodies.ID}, "The id of a learner or fleet.")
KEY = parameter("key", "path", {"type": "string", "pattern": bodies.MEMBER}, "A key of the fleet.")
AGAIN = parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "pattern": r"^[!-~]([ -~]{0,198}[!-~])?$"},
    "A name for this request: sent again, it has no effect and gets the same receipt.",
    needed=True,
)
MATCH = parameter(
    "If-None-Match", "header", {"type": "string"}, "The ETag of the decision that is known: 304 if it is in play."
)
WAIT = parameter(
    "wait",
    "query",
    {"type": "number", "minimum": 0, "maximum": 60},
    "Seconds to wait for another decision than the known one.",
)


def operation(
    *,
    answer: dict[int, type | str | None],
    body: type | None = None,
    raw: bool = False,
    parameters: Sequence[dict[str, Any]] = (),
    problems: Sequence[str] = (),
    open_to_all: bool = False,
) -> dict[str, Any]:
    """Return what one route takes and answers, as OpenAPI has it; `answer` names a structure or a media type."""
    found: dict[str, Any] = {"parameters": list(parameters), "responses": {}}
    for status, what in answer.items():
        found["responses"][str(status)] = _answer(status, what)
    said = {KINDS[kind].status for kind in problems} | ({500} if open_to_all else {401, 403, 429, 500, 503})
    if body is not None:
        said |= {400, 408, 413, 415}
        media = {bodies.JSON: {"schema": {"$ref": _REF + body.__name__}, "examples": _examples(body)}}
        if raw:
            media[bodies.RAW] = {"schema": {"type": "string", "format": "binary"}}
        found["requestBody"] = {"required": True, "content": media}
    for status in sorted(said):
        kinds = ", ".join(kind for kind, known in KINDS.items() if known.status == status)
        content = {MEDIA: {"schema": {"$ref": _REF + answers.ProblemBody.__name__}}}
        found["responses"].setdefault(str(status), {"description": f"A problem: {kinds}.", "content": content})
    if not open_to_all:
        found["security"] = [{"key": []}]
    return found


def _answer(status: int, what: type | str | None) -> dict[str, Any]:
    if what is None:
        return {"description": "Nothing more to say."}
    if isinstance(what, str):
        return {"description": "As text.", "content": {what: {"schema": {"type": "string"}}}}
    about = (what.__doc__ or "").split("\n")[0]
    return {"description": about, "content": {bodies.JSON: {"schema": {"$ref": _REF + what.__name__}}}}


def _examples(body: type) -> dict[str, Any]:
    return {name: {"value": value} for name, value in EXAMPLES[body.__name__].items()}
