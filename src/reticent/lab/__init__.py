"""Experiments: what `make demo` shows, and later the streams, tables and pictures of the papers."""
