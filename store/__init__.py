"""The database. Only the daemon opens it.

1. A unit of work is a plain function of a ``Tx``; it may run twice, so it touches nothing else. ``Tx`` never
   leaves it.
2. Units that wait together are committed together; a unit that returns a ``Refusal`` or
   raises leaves nothing behind.
3. SQL is a ``sql("...")`` constant above the one function that runs it; a test compiles every statement.
4. Events are appended in the transaction of the change and announced after its commit, in order.
5. Uniqueness and fences are constraints first, code second.

``database`` is the way in, ``batch`` the group commit, ``keeper`` a record and its row, one module a noun.
"""
