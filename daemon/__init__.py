"""The node. Way in: ``main`` builds everything.

``firm team create`` travels ``client/cli`` → ``daemon/socket`` (frames, peer) → ``daemon/dispatch`` (plane, shape,
remembered reply) → ``daemon/operations/team`` (load, decide, record) → ``daemon/kernel/team`` (the rule) →
``store/team`` (rows) → ``store/batch`` (one COMMIT for everybody who waits) → ``daemon/relay`` (who waits is woken).
"""
