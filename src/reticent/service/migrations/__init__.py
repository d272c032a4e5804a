"""The steps from one form of the tables to the next, run by Alembic when a service starts."""
