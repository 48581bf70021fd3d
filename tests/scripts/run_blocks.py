"""Runs pieces of Python in one namespace, and keeps what each of them prints.

Arguments: a JSON list of pieces, and the file for the JSON list of outputs.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

pieces, outputs = map(Path, sys.argv[1:])
namespace: dict[str, Any] = {"__name__": "__main__"}
printed: list[str] = []
for number, piece in enumerate(json.loads(pieces.read_text())):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(piece, f"block {number + 1}", "exec"), namespace)
    printed.append(output.getvalue())
outputs.write_text(json.dumps(printed))
