"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'deliver': (
        'effect.deliver',
        'write',
        'Record that a member is told at its terminal what waits for it, before that is typed.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('session_gen', '--session-gen', 'int', True, None, None, False, '', 'its generation'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
            ('wake', '--wake', 'str', True, None, ('delivery', 'continue', 'probation', 'accepted', 'claimable', 'mail'), False, '', 'why it is told now'),
        ),
    ),
    'list': (
        'effect.list',
        'read',
        'List what was done to the processes of a run, oldest first.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
            ('state', '--state', 'str', False, None, ('prepared', 'settled', 'recovery_required'), False, '', 'only in this state'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'prepare': (
        'effect.prepare',
        'write',
        'Record a launch before it is done. Asked again for a launch that is not settled, it is that very one.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('session_gen', '--session-gen', 'int', True, None, None, False, '', 'its generation'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
            ('cwd', '--cwd', 'str', True, None, None, False, '', 'the folder in which the process will work'),
            ('resumes', '--resumes', 'bool', False, False, None, False, '', 'whether the conversation of the session was found, and is gone on with'),
        ),
    ),
    'resolve': (
        'effect.resolve',
        'write',
        'Decide an effect that nothing could read back, by what a person found out.',
        (
            ('effect_id', '--effect-id', 'str', True, None, None, False, '', 'the effect'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('finding', '--finding', 'str', True, None, ('confirm_applied', 'confirm_not_applied', 'keep'), False, '', 'what was found out'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'how it was found out'),
        ),
    ),
    'settle': (
        'effect.settle',
        'write',
        'Settle an effect as applied or not, after reading it back; or say that it stays unknown.',
        (
            ('effect_id', '--effect-id', 'str', True, None, None, False, '', 'the effect'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that reports'),
            ('certainty', '--certainty', 'str', True, None, ('unknown', 'applied', 'not_applied'), False, '', 'what was read'),
            ('readback', '--readback', 'prose', False, '', None, False, '', 'what was seen, for the record'),
        ),
    ),
    'show': (
        'effect.show',
        'read',
        'Show one effect with what was read back.',
        (
            ('effect_id', '--effect-id', 'str', True, None, None, False, '', 'the effect'),
        ),
    ),
    'started': (
        'effect.started',
        'write',
        'Record which process a launch started, as it was read back.',
        (
            ('effect_id', '--effect-id', 'str', True, None, None, False, '', 'the launch'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that reports'),
            ('pane', '--pane', 'str', True, None, None, False, '', "the provider's own name of the terminal"),
            ('pid', '--pid', 'int', True, None, None, False, '', 'its first process'),
            ('start_ticks', '--start-ticks', 'int', True, None, None, False, '', 'when that began, in clock ticks of this boot'),
            ('boot_id', '--boot-id', 'str', True, None, None, False, '', 'which boot'),
        ),
    ),
    'words': (
        'effect.words',
        'read',
        'Show what is typed for a delivery or a steer.',
        (
            ('effect_id', '--effect-id', 'str', True, None, None, False, '', 'the effect'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
        ),
    ),
}
