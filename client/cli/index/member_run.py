"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'add': (
        'member-run.add',
        'write',
        'Give a membership its place in a run.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('membership_id', '--membership-id', 'str', True, None, None, False, '', 'the membership'),
            ('role', '--role', 'str', False, '', None, False, '', "the role it has in this run; its agent's usual one when empty"),
        ),
    ),
    'close': (
        'member-run.close',
        'write',
        'Close a place: no new Work and no mail for it until it is opened again.',
        (
            ('member_run_id', '--member-run-id', 'str', True, None, None, False, '', 'the place'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'reopen': (
        'member-run.reopen',
        'write',
        'Open a closed place again, under its next run generation.',
        (
            ('member_run_id', '--member-run-id', 'str', True, None, None, False, '', 'the place'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('fresh', '--fresh', 'bool', False, False, None, False, '', 'begin a new conversation instead of going on with the last one'),
        ),
    ),
    'retire': (
        'member-run.retire',
        'write',
        'Leave a place for good in this run.',
        (
            ('member_run_id', '--member-run-id', 'str', True, None, None, False, '', 'the place'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
}
