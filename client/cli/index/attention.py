"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'ack': (
        'attention.ack',
        'write',
        'Say that an incident was seen: it is not raised again.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
            ('key', '--key', 'str', True, None, None, False, '', 'the incident, as the list names it'),
        ),
    ),
    'list': (
        'attention.list',
        'read',
        'List what the caller has to look at, oldest first.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
        ),
    ),
}
