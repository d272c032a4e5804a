"""`reticent serve`: learners and fleets over HTTP; only decisions, their changes and the epsilon spent leave it."""

from reticent._core._errors import need

for _package in ("fastapi", "uvicorn", "httptools", "msgspec", "alembic", "sqlalchemy", "prometheus_client"):
    need(_package, "serve")

from reticent.service._app import create_app  # noqa: E402
from reticent.service._settings import Settings  # noqa: E402

__all__ = ["Settings", "create_app"]
