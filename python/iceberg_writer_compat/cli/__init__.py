"""The command `iceberg-writer-compat`."""

# Importing a module adds its commands.
from iceberg_writer_compat.cli import enabling, iceberg, installing, reports
from iceberg_writer_compat.cli._common import main

__all__ = ["enabling", "iceberg", "installing", "main", "reports"]
