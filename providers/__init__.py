"""Terminals and the processes in them: start, watch, type, stop. Knows no daemon and no database."""
