"""One team run: see, decide, act, report. Empty until runs are built."""
