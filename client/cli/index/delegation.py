"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'accept': (
        'delegation.accept',
        'write',
        'Accept a proposal: our team makes a Work of its own for it, in a run of ours.',
        (
            ('delegation_id', '--delegation-id', 'str', True, None, None, False, '', 'the proposal'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'our run in which it is done'),
        ),
    ),
    'decline': (
        'delegation.decline',
        'write',
        'Decline a proposal.',
        (
            ('delegation_id', '--delegation-id', 'str', True, None, None, False, '', 'the proposal'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'why'),
        ),
    ),
    'list': (
        'delegation.list',
        'read',
        'List proposals from and to a team, oldest first.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'propose': (
        'delegation.propose',
        'write',
        'Propose to another team that it does something for one of our Works.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'our Work that needs it'),
            ('target_team_id', '--target-team-id', 'str', True, None, None, False, '', 'the other team, by id or unique name'),
            ('title', '--title', 'str', True, None, None, False, '', 'what they should answer for'),
            ('completion_criteria', '--completion-criteria', 'prose', True, None, None, False, '', 'what we shall check, one criterion a line'),
            ('context', '--context', 'prose', False, '', None, False, '', 'why, and what they need to know'),
        ),
    ),
    'withdraw': (
        'delegation.withdraw',
        'write',
        'Withdraw our own proposal that was not answered.',
        (
            ('delegation_id', '--delegation-id', 'str', True, None, None, False, '', 'the proposal'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
}
