"""The HTTP face: routes, who may use them, and answers without anything that is not released."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match

from reticent.fleet._keys import Key
from reticent.service import _answers as answers
from reticent.service import _metrics, _openapi
from reticent.service._bodies import (
    JSON,
    RAW,
    KeyedRounds,
    NewFleet,
    NewKey,
    NewLearner,
    Rounds,
    decoded,
    member,
    target_of,
)
from reticent.service._held import Write, print_of
from reticent.service._hub import Hub
from reticent.service._keys import SCOPES, Grant
from reticent.service._limits import Buckets, read_body
from reticent.service._openapi import AGAIN, ID, KEY, MATCH, WAIT, operation, parameter
from reticent.service._problems import MEDIA, Problem, by_status
from reticent.service._promise import described, plan_facts
from reticent.service._settings import Settings
from reticent.service._shelf import FLEET, LEARNER, Resource

log = logging.getLogger("reticent.service")
PAGE = Path(__file__).parent / "page"
_PING = 15.0  # seconds between signs of life on a stream of events
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NO_TELEMETRY: Any = {
    **dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False),
    "exclude": lambda scope: True,
}
_FILES = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}

Handler = Callable[[Request, Grant], Awaitable[Response]]


def create_app(settings: Settings, hub: Hub | None = None) -> FastAPI:
    """Return the application; the store is opened when it starts, unless it is already, and let go of when it stops."""
    service = Service(settings, hub)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.hub.stop()

    # FastAPI's own pages of documentation load their parts from elsewhere, and are blank where that is not allowed. Its
    # telemetry would send running times and messages of errors to whatever the environment names.
    app = FastAPI(
        title="reticent",
        version="1",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
    )
    app.state.service = service
    service.add_routes(app)
    return app


class Service:
    """The routes over one hub."""

    def __init__(self, settings: Settings, hub: Hub | None) -> None:
        """Take the settings; nothing is opened yet."""
        self.settings = settings
        self._buckets = Buckets(settings.rate, settings.burst)
        self._given = hub
        self.hub: Hub

    async def start(self) -> None:
        """Open everything."""
        self.hub = await asyncio.to_thread(Hub, self.settings) if self._given is None else self._given
        await self.hub.start()

    # How a request is let in, and how it is answered.

    def _admitted(self, request: Request, scope: str) -> Grant:
        said = request.headers.get("authorization", "")
        kind, _, key = said.partition(" ")
        if kind.lower() != "bearer" or not key:
            raise Problem(
                "no-key", "send the header Authorization: Bearer rt_…", headers={"WWW-Authenticate": "Bearer"}
            )
        grant = self.hub.keys.known(key.strip())
        if grant is None:
            raise Problem("wrong-key", "unknown, revoked or expired", headers={"WWW-Authenticate": "Bearer"})
        wait = self._buckets.take(grant.id)
        if wait:
            raise Problem("too-many", "slow down", headers={"Retry-After": str(max(1, round(wait)))})
        name = request.path_params.get("id")
        if name is not None:
            grant.check(scope, name)
        else:
            # Without a learner in the address: what a key for some of them may do is looked at there.
            grant.check(scope, next(iter(grant.only)) if grant.only and scope == "read" else None)
        return grant

    def _endpoint(
        self, route: str, scope: str, handler: Handler, writes: bool
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                response = await handler(request, self._admitted(request, scope))
            except Problem as problem:
                response = answered(problem)
            except OSError:
                response = answered(
                    Problem("store", "the store does not answer; ask again", headers={"Retry-After": "1"})
                )
            except Exception as error:
                response = answered(unexpected(error))
            response.raw_headers.extend(_SAFE)
            self.hub.metrics.answered(route, writes, response.status_code)
            return response

        return endpoint

    async def _body(self, request: Request, *kinds: str) -> bytes:
        said = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if said not in kinds:
            raise Problem("wrong-type", f"send {' or '.join(kinds)}", headers={"Accept-Post": ", ".join(kinds)})
        return await read_body(request, self.settings.body_bytes, self.settings.body_seconds)

    def add_routes(self, app: FastAPI) -> None:
        """Tell the application all routes, and describe them."""
        routes: list[tuple[str, str, str, str, Handler, dict[str, Any]]] = []

        def add(method: str, path: str, scope: str, summary: str, handler: Handler, **more: Any) -> None:
            routes.append((method, path, scope, summary, handler, operation(**more)))

        for kind, body in ((LEARNER, NewLearner), (FLEET, NewFleet)):
            base, many = f"/v1/{kind}s", answers.Learners if kind == LEARNER else answers.Fleets
            add(
                "POST",
                base,
                "admin",
                f"Make a {kind}",
                self._make(kind),
                body=body,
                parameters=[AGAIN],
                answer={201: answers.Resource, 200: answers.Resource},
                problems=["exists", "refused", "no-idempotency-key"],
            )
            add("GET", base, "read", f"List {kind}s", self._list(kind), answer={200: many})
            one = f"{base}/{{id}}"
            shared: dict[str, Any] = {"parameters": [ID], "problems": ["not-found"]}
            add(
                "GET",
                one,
                "read",
                f"A {kind} and what is promised",
                self._about(kind),
                answer={200: answers.Resource},
                **shared,
            )
            add(
                "GET",
                f"{one}/plan",
                "read",
                "The plan and its certificate",
                self._plan(kind),
                answer={200: answers.PlanFacts},
                **shared,
            )
            add(
                "POST",
                f"{one}/retire",
                "admin",
                "Take no more rounds, for good",
                self._retire(kind),
                answer={200: answers.Resource},
                **shared,
            )
            add(
                "POST",
                f"{one}/rounds",
                "write",
                "Take in rounds",
                self._rounds(kind),
                body=Rounds if kind == LEARNER else KeyedRounds,
                raw=True,
                parameters=[ID, AGAIN],
                answer={200: answers.Receipt},
                problems=["not-found", "refused", "no-idempotency-key", "retired", "old-copy"],
            )
            at, named = (one, [ID]) if kind == LEARNER else (f"{one}/keys/{{key}}", [ID, KEY])
            of_one: dict[str, Any] = {"problems": ["not-found", "malformed"]}
            add(
                "GET",
                f"{at}/decision",
                "read",
                "The decision in play",
                self._decision(kind),
                parameters=[*named, MATCH, WAIT],
                answer={200: answers.Shown, 304: None},
                **of_one,
            )
            limit = parameter(
                "limit", "query", {"type": "integer", "minimum": 1, "maximum": 10_000}, "So many changes at most."
            )
            add(
                "GET",
                f"{at}/history",
                "read",
                "Decisions in their order",
                self._history(kind),
                parameters=[*named, limit],
                answer={200: answers.History},
                **of_one,
            )
            add(
                "GET",
                f"{at}/spent",
                "read",
                "The epsilon spent so far",
                self._spent(kind),
                parameters=named,
                answer={200: answers.Spent},
                problems=["not-found", "malformed", "retired", "old-copy"],
            )
            add(
                "GET",
                f"{at}/events",
                "read",
                "Server-sent events: the decision, and each change",
                self._events(kind),
                parameters=named,
                answer={200: "text/event-stream"},
                **of_one,
            )
        words = [
            parameter(name, "query", {"type": "string", "maxLength": 200}, about)
            for name, about in (("prefix", "Keys that begin so."), ("after", "The last key of the page before."))
        ]
        limit = parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 1000}, "So many keys at most.")
        add(
            "GET",
            "/v1/fleets/{id}/keys",
            "read",
            "Keys with their decisions",
            self._keys_of,
            parameters=[ID, *words, limit],
            answer={200: answers.KeyPage},
            problems=["not-found", "malformed"],
        )
        add(
            "GET",
            "/v1/events",
            "read",
            "Server-sent events: what has changed",
            self._all_events,
            answer={200: "text/event-stream"},
        )
        add("GET", "/v1/ledger", "read", "The ledger", self._ledger, answer={200: answers.Books})
        add("GET", "/v1/me", "read", "What this key allows", self._me, answer={200: answers.Me})
        add("GET", "/v1/keys", "admin", "API keys", self._list_keys, answer={200: answers.Grants})
        add("POST", "/v1/keys", "admin", "Make an API key", self._make_key, body=NewKey, answer={201: answers.MadeKey})
        of = parameter("id", "path", {"type": "string", "pattern": "^[0-9a-f]{12}$"}, "The id of an API key.")
        add(
            "DELETE",
            "/v1/keys/{id}",
            "admin",
            "Revoke an API key",
            self._revoke,
            parameters=[of],
            answer={204: None},
            problems=["not-found"],
        )
        add(
            "GET",
            "/metrics",
            "read",
            "Counts, for Prometheus",
            self._metrics,
            answer={200: _metrics.MEDIA.partition(";")[0]},
        )
        # What is asked most is looked for first. Bodies are read by msgspec, so that nothing is left for the parameters
        # of FastAPI's own routes, which would cost half as much as all the rest.
        routes.sort(key=lambda route: not route[1].endswith(("/rounds", "/decision")))
        for method, path, scope, _, handler, _ in routes:
            endpoint = self._endpoint(path, scope, handler, path.endswith("/rounds"))
            app.router.add_route(
                path.replace("{key}", "{key:path}"), endpoint, methods=[method]
            )  # keys may have slashes
        self._described = [
            (method, path, {"summary": summary, **about}) for method, path, _, summary, _, about in routes
        ]
        self._add_open_routes(app)
        app.add_exception_handler(HTTPException, _framework)
        app.add_exception_handler(Exception, _framework)
        app.openapi = lambda: _openapi.document(self._described)  # type: ignore[method-assign]

    def _add_open_routes(self, app: FastAPI) -> None:
        async def health(_: Request) -> Response:
            return _json(answers.Health("ok"))

        async def ready(_: Request) -> Response:
            try:
                await asyncio.wait_for(asyncio.to_thread(self.hub.shelf.listed, FLEET), 5.0)
            except (OSError, TimeoutError):
                return answered(Problem("store", "the store does not answer"))
            if self.hub.stopping.is_set():
                return answered(Problem("stopping", "this server is stopping"))
            return _json(answers.Health("ready"))

        for path, endpoint, problems in (("/healthz", health, []), ("/readyz", ready, ["store"])):
            about = operation(answer={200: answers.Health}, open_to_all=True, problems=problems)
            app.router.add_route(path, endpoint, methods=["GET"])
            self._described.append(("GET", path, {"summary": "Whether it runs", **about}))
        contents = {name: (PAGE / name).read_bytes() for name in _FILES}

        def page(name: str) -> Callable[[Request], Awaitable[Response]]:
            headers = {"Content-Security-Policy": _POLICY, "X-Frame-Options": "DENY", "Cache-Control": "no-cache"}
            headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}

            async def show(_: Request) -> Response:
                return Response(contents[name], media_type=_FILES[name], headers=headers)

            return show

        app.router.add_route("/", page("index.html"), methods=["GET"])
        for name in ("page.css", "page.js"):
            app.router.add_route(f"/page/{name}", page(name), methods=["GET"])

    # Learners and fleets.

    def _make(self, kind: str) -> Handler:
        async def make(request: Request, grant: Grant) -> Response:
            body = decoded(await self._body(request, JSON), NewLearner if kind == LEARNER else NewFleet)
            resource, fresh = await self.hub.make(kind, body, _again(request))  # type: ignore[arg-type]
            return _json(described(resource), 201 if fresh else 200, Location=f"/v1/{kind}s/{resource.id}")

        return make

    def _list(self, kind: str) -> Handler:
        async def listed(request: Request, grant: Grant) -> Response:
            found = await self.hub.listed(kind, grant.only)
            return _json(answers.Learners(found) if kind == LEARNER else answers.Fleets(found))

        return listed

    def _about(self, kind: str) -> Handler:
        async def about(request: Request, grant: Grant) -> Response:
            return _json(described(await self._resource(kind, request)))

        return about

    def _plan(self, kind: str) -> Handler:
        async def plan(request: Request, grant: Grant) -> Response:
            return _json(plan_facts(await self._resource(kind, request)))

        return plan

    def _retire(self, kind: str) -> Handler:
        async def retire(request: Request, grant: Grant) -> Response:
            return _json(described(await self.hub.retire(kind, request.path_params["id"])))

        return retire

    async def _resource(self, kind: str, request: Request) -> Resource:
        return await self.hub.resource(kind, request.path_params["id"])

    def _rounds(self, kind: str) -> Handler:
        async def rounds(request: Request, grant: Grant) -> Response:
            again = _again(request)
            raw = request.headers.get("content-type", "").startswith(RAW)
            body = await self._body(request, JSON, RAW)
            write = _write(await self._resource(kind, request), again, body, raw)
            held = await self.hub.held(kind, request.path_params["id"])
            outcome = await held.submit(write)
            replayed = {"Idempotency-Replayed": "true"} if outcome.repeated else None
            return Response(outcome.body, media_type=JSON, headers=replayed)

        return rounds

    # What is read of them.

    async def _place(self, kind: str, request: Request) -> tuple[Resource, Key]:
        resource = await self._resource(kind, request)
        given = request.path_params.get("key")
        key = self.hub.key_of(resource, None if given is None else member("a key", given))
        if kind == FLEET and not await asyncio.to_thread(self.hub.shelf.known, resource, key):
            raise Problem("not-found", "this key has had no rounds yet")
        return resource, key

    def _decision(self, kind: str) -> Handler:
        async def decision(request: Request, grant: Grant) -> Response:
            resource, key = await self._place(kind, request)
            known = request.headers.get("if-none-match")
            wait = _seconds(request.query_params.get("wait", "0"), self.settings.wait_seconds)
            if not wait or known is None:
                found = await self.hub.decision(resource, key)
            else:
                found = await self.hub.another(resource, key, known, wait)
            headers = {"ETag": found.etag}
            if known is not None and (known == "*" or found.etag in known):
                return Response(status_code=304, headers=headers)
            return Response(found.body, media_type=JSON, headers=headers)

        return decision

    def _history(self, kind: str) -> Handler:
        async def history(request: Request, grant: Grant) -> Response:
            resource, key = await self._place(kind, request)
            limit = _whole(request, "limit", 1000, 10_000)
            counted = self.settings.public_clock
            return _json(await asyncio.to_thread(self.hub.shelf.history, resource, key, limit, counted))

        return history

    def _spent(self, kind: str) -> Handler:
        async def spent(request: Request, grant: Grant) -> Response:
            resource, key = await self._place(kind, request)
            held = await self.hub.held(kind, resource.id)
            return _json(await held.spent(key))

        return spent

    def _events(self, kind: str) -> Handler:
        async def events(request: Request, grant: Grant) -> Response:
            resource, key = await self._place(kind, request)
            return StreamingResponse(self._follow(request, resource, key), media_type="text/event-stream")

        return events

    async def _follow(self, request: Request, resource: Resource, key: Key) -> AsyncIterator[bytes]:
        etag = ""
        while not self.hub.stopping.is_set():
            found = await self.hub.another(resource, key, etag, _PING)
            if not self._still(request):
                return
            if found.etag == etag:
                yield b": here\n\n"
                continue
            etag = found.etag
            yield b"event: decision\nid: %d\ndata: %s\n\n" % (found.version, found.body)

    async def _all_events(self, request: Request, grant: Grant) -> Response:
        return StreamingResponse(self._follow_all(request, grant), media_type="text/event-stream")

    async def _follow_all(self, request: Request, grant: Grant) -> AsyncIterator[bytes]:
        async with self.hub.listening() as events:
            yield b": here\n\n"
            while not self.hub.stopping.is_set():
                try:
                    event = await asyncio.wait_for(events.get(), _PING)
                except TimeoutError:
                    event = {}
                if event is None or not self._still(request):
                    return
                if not event:
                    yield b": here\n\n"
                elif grant.only is None or event["id"] in grant.only:
                    yield b"event: change\ndata: %s\n\n" % msgspec.json.encode(event)

    def _still(self, request: Request) -> bool:
        """Say whether the key of a long answer is one still."""
        key = request.headers["authorization"].partition(" ")[2].strip()
        return self.hub.keys.known(key) is not None

    async def _keys_of(self, request: Request, grant: Grant) -> Response:
        resource, asked = await self._resource(FLEET, request), request.query_params
        limit = _whole(request, "limit", 100, 1000)
        prefix, after = asked.get("prefix", ""), asked.get("after")
        if len(prefix) > 200 or len(after or "") > 200:
            raise Problem("malformed", "prefix and after may have 200 letters")
        return _json(await asyncio.to_thread(self.hub.shelf.keys, resource, prefix, after, limit))

    # The rest.

    async def _ledger(self, request: Request, grant: Grant) -> Response:
        if grant.only is not None:
            raise Problem("not-allowed", "this key is for some learners only, and the ledger is about all")
        return _json(await asyncio.to_thread(self.hub.books))

    async def _me(self, request: Request, grant: Grant) -> Response:
        only = None if grant.only is None else sorted(grant.only)
        return _json(answers.Me(grant.name, [scope for scope in SCOPES if scope in grant.scopes], only))

    async def _list_keys(self, request: Request, grant: Grant) -> Response:
        found = await asyncio.to_thread(self.hub.keys.listed)
        return _json(answers.Grants([answers.GrantLine(**one) for one in found]))

    async def _make_key(self, request: Request, grant: Grant) -> Response:
        body = decoded(await self._body(request, JSON), NewKey)
        make = self.hub.keys.make
        key, made = await asyncio.to_thread(lambda: make(body.name, body.scopes, only=body.only, days=body.days))
        return _json(answers.MadeKey(made.id, key, [scope for scope in SCOPES if scope in made.scopes]), 201)

    async def _revoke(self, request: Request, grant: Grant) -> Response:
        if not await asyncio.to_thread(self.hub.keys.revoke, request.path_params["id"]):
            raise Problem("not-found", "there is no such key, or it was revoked already")
        return Response(status_code=204)

    async def _metrics(self, request: Request, grant: Grant) -> Response:
        return Response(self.hub.metrics.text(), media_type=_metrics.MEDIA)


def _write(resource: Resource, again: str, body: bytes, raw: bool) -> Write:
    """Return what a request asks to be taken in."""
    shape, keyed, lag = resource.shape, resource.kind == FLEET, resource.options["feedback_lag"]
    mark = print_of(b"raw" if raw else b"json", body)
    if raw:
        keys, columns = shape.raw(body, keyed)
    else:
        given = shape.read(body, keyed)
        if isinstance(given, Rounds):
            return _feedback(resource, given, mark)
        keys, columns = given
    if lag is not None:
        raise Problem(
            "refused", "this learner has delayed feedback: open its rounds with their features, and close them"
        )
    return Write(f"key {again}", mark, keys, columns)


def _feedback(resource: Resource, given: Rounds, mark: bytes) -> Write:
    if resource.options["feedback_lag"] is None:
        raise Problem("refused", "this learner was made without a feedback_lag, and takes whole rounds only")
    if (given.open is None) == (given.close is None) or given.columns is not None or given.rows is not None:
        raise Problem("refused", "a round is either opened, with its features, or closed, with its target")
    assert given.round is not None
    if given.open is not None:
        return Write(f"open {given.round}", mark, opened=(given.round, resource.shape.open_features(given.open)))
    assert given.close is not None
    return Write(f"close {given.round}", mark, closed=(given.round, target_of(given.close)))


def _again(request: Request) -> str:
    given = request.headers.get("idempotency-key")
    if given is None:
        raise Problem(
            "no-idempotency-key",
            "a round that is given twice costs twice: send the header Idempotency-Key, a new one for each request",
        )
    return member("an Idempotency-Key", given)


def _seconds(text: str, most: float) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise Problem("malformed", f"wait must be a number of seconds from 0 to {most:g}")
    return found


def _whole(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= most or len(text) > 8:
        raise Problem("malformed", f"{name} must be a whole number from 1 to {most}")
    return int(text)


def _json(value: Any, status: int = 200, **headers: str) -> Response:
    return Response(msgspec.json.encode(value), status, headers, JSON)


def answered(problem: Problem) -> Response:
    """Return a problem as an answer."""
    return Response(problem.encoded(), problem.status, problem.headers, MEDIA)


def unexpected(error: Exception) -> Problem:
    """Write down where something went wrong that should not, without what it was about, and return the problem."""
    places = " < ".join(
        f"{Path(at.filename).name}:{at.lineno}" for at in reversed(traceback.extract_tb(error.__traceback__))
    )
    log.error("%s at %s", type(error).__name__, places)
    return Problem("internal", "an error of the service, which its log has the place of")


async def _framework(request: Request, error: Exception) -> Response:
    """Answer what the framework refuses by itself."""
    if not isinstance(error, HTTPException):
        return answered(unexpected(error))
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # One route for each method: the framework knows the one it has met first.
        match = [route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE]
        headers["Allow"] = ", ".join(sorted({method for route in match for method in getattr(route, "methods", ())}))
    found = answered(Problem(by_status(error.status_code), str(error.detail).lower(), headers=headers))
    found.raw_headers.extend(_SAFE)
    return found
