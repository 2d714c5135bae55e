"""Everything a process outside the daemon needs: the protocol, a connection, the command line."""
