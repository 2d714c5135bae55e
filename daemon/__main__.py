"""``python -I -m daemon``: run the daemon in the foreground; ``supervise RUN`` supervises one run beside it;
``restore FILE`` puts a backup in place.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from daemon.command import main

    sys.exit(main(sys.argv[1:]))
