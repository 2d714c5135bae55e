"""A daemon that knows one more profile: ``idler``, whose members do nothing. Run as
``python -I -m benchmarks.idle_daemon``.
"""

from __future__ import annotations

import sys

from daemon import main
from providers.profiles import PROFILES, Profile

if __name__ == "__main__":
    assert isinstance(PROFILES, dict)
    PROFILES["idler"] = Profile(name="idler", argv=["{python}", "-I", "-m", "benchmarks.idler"])
    sys.exit(main.run())
