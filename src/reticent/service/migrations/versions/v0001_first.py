"""The first tables of the service, and those of fleets where a fleet has not made them already.

Written out and never changed: what a later version does otherwise is a step of its own.
"""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG, _TEXT, _BLOB = sql.BigInteger, sql.Text, sql.LargeBinary
_WHOLE = sql.BigInteger().with_variant(sql.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables."""
    there = set(sql.inspect(op.get_bind()).get_table_names())
    if "reticent_fleets" not in there:
        _fleets()
    op.create_table(
        "reticent_service_resources",
        sql.Column("id", sql.String(64), primary_key=True),
        sql.Column("kind", sql.String(10), nullable=False),
        sql.Column("name", sql.String(200), nullable=False),
        sql.Column("spec", _TEXT, nullable=False),
        sql.Column("options", _TEXT, nullable=False),
        sql.Column("state", sql.String(10), nullable=False),
        sql.Column("created", sql.String(32), nullable=False),
    )
    op.create_table(
        "reticent_service_keys",
        sql.Column("id", sql.String(64), primary_key=True),
        sql.Column("digest", sql.String(64), nullable=False, unique=True),
        sql.Column("name", sql.String(200), nullable=False),
        sql.Column("scopes", sql.String(40), nullable=False),
        sql.Column("only", _TEXT),
        sql.Column("created", sql.String(32), nullable=False),
        sql.Column("expires", sql.String(32)),
        sql.Column("revoked", sql.String(32)),
    )
    op.create_table(
        "reticent_service_requests",
        sql.Column("resource", sql.String(64), primary_key=True),
        sql.Column("name", sql.String(200), primary_key=True),
        sql.Column("print", _BLOB, nullable=False),
        sql.Column("receipt", _TEXT, nullable=False),
        sql.Column("made", sql.Double, nullable=False, index=True),
    )
    op.create_table(
        "reticent_service_open_rounds",
        sql.Column("resource", sql.String(64), primary_key=True),
        sql.Column("number", _BIG, primary_key=True, autoincrement=False),
        sql.Column("round", sql.String(200), nullable=False, index=True),
        sql.Column("features", _BLOB, nullable=False),
        sql.Column("target", sql.Double),
    )


def _part(name: str, kind: type | sql.types.TypeEngine = _BIG) -> sql.Column:  # type: ignore[type-arg]
    return sql.Column(name, kind, primary_key=True, autoincrement=False)


def _fleets() -> None:
    op.create_table(
        "reticent_fleets",
        sql.Column("fleet", _WHOLE, primary_key=True, autoincrement=True),
        sql.Column("name", sql.String(200), nullable=False, unique=True),
        sql.Column("spec", _TEXT, nullable=False),
        sql.Column("root", _TEXT, nullable=False),
        sql.Column("about", _TEXT, nullable=False),
        sql.Column("size", _BIG, nullable=False),
        sql.Column("sequence", _BIG, nullable=False),
        sql.Column("fence", _BIG, nullable=False),
        sql.Column("owner", _TEXT, nullable=False),
        sql.Column("until", sql.Double, nullable=False),
    )
    op.create_table(
        "reticent_fleet_keys",
        _part("fleet"),
        _part("number"),
        sql.Column("word", _TEXT, nullable=False),
        sql.Column("version", _BIG, nullable=False),
        sql.Column("rounds", _BIG, nullable=False),
        sql.Column("decision", _BLOB, nullable=False),
        sql.Column("state", _BLOB, nullable=False),
        sql.UniqueConstraint("fleet", "word", name="reticent_fleet_word"),
    )
    op.create_table(
        "reticent_fleet_changes",
        _part("fleet"),
        _part("number"),
        _part("rounds"),
        sql.Column("point", _BLOB, nullable=False),
    )
    op.create_table(
        "reticent_fleet_batches",
        _part("fleet"),
        _part("name", _TEXT),
        _part("place"),
        sql.Column("sequence", _BIG, nullable=False),
        sql.Column("rounds", _BIG, nullable=False),
        sql.Column("changed", _BLOB, nullable=False),
    )
    op.create_index("reticent_fleet_batch_order", "reticent_fleet_batches", ["fleet", "sequence"])
    op.create_table(
        "reticent_fleet_sources", _part("fleet"), _part("name", _TEXT), sql.Column("place", _BIG, nullable=False)
    )
    op.create_table("reticent_fleet_persons", _part("fleet"), _part("person", sql.String(32)), _part("number"))
