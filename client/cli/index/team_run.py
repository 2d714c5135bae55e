"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'board': (
        'team-run.board',
        'read',
        'Show who does what, what is blocked and why, and what somebody has to look at.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
        ),
    ),
    'board-summary': (
        'team-run.board-summary',
        'read',
        'Say in at most 500 characters where a run stands.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
        ),
    ),
    'cancel': (
        'team-run.cancel',
        'write',
        "Cancel a run; each Work that is not closed is closed as cancelled under the caller's name.",
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'why, for the record'),
        ),
    ),
    'complete': (
        'team-run.complete',
        'write',
        'Complete a run; refused while one of its Works is not closed.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('when_closed', '--when-closed', 'bool', False, False, None, False, '', 'while a Work is not closed, wait for that instead of refusing'),
        ),
    ),
    'create': (
        'team-run.create',
        'write',
        'Plan a run of a team; every active member of the team gets its place in it.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('objective', '--objective', 'prose', False, '', None, False, '', 'what the run is for'),
            ('cycles', '--cycles', 'int', False, 4, None, False, '', 'how many members may be in a cycle at once'),
        ),
    ),
    'drain': (
        'team-run.drain',
        'write',
        'Take nothing new into a running run; what is claimed goes on.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'due': (
        'team-run.due',
        'read',
        'List what a supervisor has to look after now.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
        ),
    ),
    'finish': (
        'team-run.finish',
        'write',
        'Go on with the end of a run that was told to complete: its sessions are asked to end, then it is completed.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
        ),
    ),
    'list': (
        'team-run.list',
        'read',
        'List runs, oldest first.',
        (
            ('team_id', '--team-id', 'str', False, None, None, False, '', 'only of this team'),
            ('state', '--state', 'str', False, None, ('planned', 'running', 'draining', 'completed', 'cancelled'), False, '', 'only in this state'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'purge': (
        'team-run.purge',
        'write',
        'Remove what was said in a run that is over. Ids, versions, times, titles, digests and receipts stay.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('exported_seq', '--exported-seq', 'int', True, None, None, False, '', 'the last sequence number of its events that was exported'),
        ),
    ),
    'renew': (
        'team-run.renew',
        'live',
        'Keep a run that was taken under a lease: nobody else takes it before that is over; 0 lets go of it.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
            ('lease_ms', '--lease-ms', 'int', True, None, None, False, '', 'milliseconds for which nobody else may take it'),
        ),
    ),
    'resume': (
        'team-run.resume',
        'write',
        'Let a draining run take new Works again.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'show': (
        'team-run.show',
        'read',
        "Show one run and everybody's place in it.",
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
        ),
    ),
    'start': (
        'team-run.start',
        'write',
        'Start a planned run.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'take': (
        'team-run.take',
        'write',
        'Become the supervisor of a run: the next supervisor generation begins, the former one is fenced.',
        (
            ('team_run_id', '--team-run-id', 'str', True, None, None, False, '', 'the run'),
            ('lease_ms', '--lease-ms', 'int', False, 0, None, False, '', 'milliseconds for which nobody else may take it'),
        ),
    ),
}
