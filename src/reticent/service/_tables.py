"""The tables of the service: what was made, who may ask, and rounds whose targets are still to come."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, LargeBinary, MetaData, String, Table, Text

METADATA = MetaData()

RESOURCES = Table(
    "reticent_service_resources",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("kind", String(10), nullable=False),
    Column("name", String(200), nullable=False),
    Column("spec", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("created", String(32), nullable=False),
)
"""Learners and fleets. `state` is "new" until the ledger was charged and the fleet made, then "live" or "retired"."""

KEYS = Table(
    "reticent_service_keys",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("scopes", String(40), nullable=False),
    Column("only", Text),
    Column("created", String(32), nullable=False),
    Column("expires", String(32)),
    Column("revoked", String(32)),
)

REQUESTS = Table(
    "reticent_service_requests",
    METADATA,
    Column("resource", String(64), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("print", LargeBinary, nullable=False),
    Column("receipt", Text, nullable=False),
    Column("made", Double, nullable=False, index=True),
)
"""Requests that were taken in, by Idempotency-Key: a print of what was asked, and the receipt. Written in the
transaction that takes in their rounds."""

OPEN_ROUNDS = Table(
    "reticent_service_open_rounds",
    METADATA,
    Column("resource", String(64), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("round", String(200), nullable=False, index=True),
    Column("features", LargeBinary, nullable=False),
    Column("target", Double),
)
"""Rounds that were opened, in their order; those that have entered the learner are deleted."""
