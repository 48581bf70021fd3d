"""The command `iceberg-writer-compat`."""

# Importing a module adds its commands.
from iceberg_writer_compat.cli import enabling, iceberg, reports
from iceberg_writer_compat.cli._common import main

__all__ = ["enabling", "iceberg", "main", "reports"]
