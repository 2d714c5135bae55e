"""Commands that are not one operation.

Each module has ``FIELDS``, what may be given, and ``run(verb, given) -> exit status``.
"""
