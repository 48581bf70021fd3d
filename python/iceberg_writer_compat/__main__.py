"""The command, as `python -m iceberg_writer_compat`."""

from iceberg_writer_compat.cli import main

main()
