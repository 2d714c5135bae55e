"""Rules: pure tables and functions. No clock, no database, no process, no chance."""
