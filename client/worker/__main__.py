"""``python -I -m client.worker``: serve the session that this process is, until it ends."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from client.worker.command import main

    sys.exit(main())
