"""Processes: start, watch, stop, confine. Empty until runs are built."""
