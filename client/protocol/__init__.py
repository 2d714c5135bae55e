"""What can be said to the daemon.

Read in this order: ``operation`` (what a row is), ``refusals`` (what may be answered instead), one
noun (``team``), ``table`` (all rows). ``codec``, ``frames`` and ``hello`` are the wire; ``cli_index``,
``json_schema`` and ``reference`` render the table. Nothing here opens a file or a socket.
"""
