"""Logs: one line a record on stderr, ``key=value`` behind the text; priorities where the journal reads them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

_PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _Journal(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).splitlines() or [""]
        return "\n".join(f"<{_PRIORITY.get(record.levelno, 6)}>{line}" for line in lines)


def set_up(environment: Mapping[str, str]) -> None:
    """The journal adds time and process itself; a file does not."""
    handler = logging.StreamHandler(sys.stderr)
    if "JOURNAL_STREAM" in environment:
        handler.setFormatter(_Journal("%(name)s: %(message)s"))
    else:
        plain = "%(asctime)s.%(msecs)03d %(levelname)s %(process)d %(name)s: %(message)s"
        handler.setFormatter(logging.Formatter(plain, datefmt="%Y-%m-%dT%H:%M:%S"))
    level = environment.get("FIRM_LOG", "INFO").upper()
    logging.basicConfig(level=level if level in logging.getLevelNamesMapping() else "INFO", handlers=[handler])
