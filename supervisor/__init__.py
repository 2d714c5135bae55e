"""One team run: see, decide, act, report; each step through the daemon, as any client asks it."""
