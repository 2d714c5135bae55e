"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'bind': (
        'session.bind',
        'write',
        "Make a running process of a person's own the session of a member; its whole tree is that member from then on.",
        (
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
            ('pid', '--pid', 'int', True, None, None, False, '', "a running process, such as the shell's $$"),
            ('team_run_id', '--team-run-id', 'str', False, None, None, False, '', 'the run, where the member is in several'),
        ),
    ),
    'claims': (
        'session.claims',
        'write',
        'Let a session take new claims, or no more; heartbeat and outcome of what it has stay.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('accepts_new_claims', '--accepts-new-claims', 'bool', True, None, None, False, '', 'whether it may claim'),
            ('sup_gen', '--sup-gen', 'int', False, None, None, False, '', 'the supervisor generation that asks; the operator names none'),
        ),
    ),
    'close': (
        'session.close',
        'write',
        "End a member's process, with everything it started, and close its place in the run.",
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'hook': (
        'session.hook',
        'write',
        "Say what a hook of the caller's own program was run for; what is late or told twice changes nothing.",
        (
            ('event', '--event', 'str', True, None, None, False, '', "the program's name for it; the caller's profile says what that means"),
            ('sequence', '--sequence', 'int', True, None, None, False, '', 'a number that grows with each hook, such as nanoseconds of a clock'),
            ('turn', '--turn', 'str', False, '', None, False, '', "the program's own id of the turn"),
        ),
    ),
    'interrupt': (
        'session.interrupt',
        'write',
        "Interrupt what a member's process does now; the process and its Work stay.",
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'list': (
        'session.list',
        'read',
        'List sessions, oldest first.',
        (
            ('team_run_id', '--team-run-id', 'str', False, None, None, False, '', 'only of this run'),
            ('state', '--state', 'str', False, None, ('cold', 'idle', 'active', 'interrupted', 'recovery_required', 'closed'), False, '', 'only in this state'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'open': (
        'session.open',
        'write',
        'Open the next session of a place; a former one that is not closed is superseded when asked so.',
        (
            ('member_run_id', '--member-run-id', 'str', True, None, None, False, '', 'the place'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
            ('driver', '--driver', 'str', False, 'host_driven', ('host_driven', 'user_driven'), False, '', 'who starts its cycles'),
            ('supersede', '--supersede', 'bool', False, False, None, False, '', 'end a former session that is not closed'),
            ('cwd', '--cwd', 'str', False, '', None, False, '', 'the folder in which it will work, where that is known'),
        ),
    ),
    'report': (
        'session.report',
        'write',
        'Report what became of a session.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('session_gen', '--session-gen', 'int', True, None, None, False, '', 'its generation'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that reports'),
            ('cause', '--cause', 'str', True, None, ('ready', 'cycle_started', 'cycle_ended', 'interrupted', 'reopened', 'adopted', 'exited', 'lost', 'resolved', 'closed', 'degraded'), False, '', 'what happened'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
            ('native_session', '--native-session', 'str', False, '', None, False, '', "the provider's own session id, once known"),
            ('ending', '--ending', 'str', False, None, ('completed', 'empty_output', 'interrupted_by_host', 'interrupted_by_provider', 'closed', 'provider_failed', 'transport_lost', 'terminal_unobserved'), False, '', 'how its cycle ended'),
            ('failure', '--failure', 'str', False, None, ('quota_exhausted', 'unauthorized', 'output_limit', 'refusal', 'turn_request_limit', 'runner_error', 'turn_failed'), False, '', 'how its provider failed the cycle'),
            ('capacity', '--capacity', 'str', False, None, ('available', 'limited', 'exhausted', 'unauthorized', 'unknown'), False, '', 'what the records of its program say that its provider gives'),
            ('capacity_source', '--capacity-source', 'str', False, '', None, False, '', 'which rule read that'),
        ),
    ),
    'show': (
        'session.show',
        'read',
        'Show one session and its capability, never the token.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
        ),
    ),
    'steer': (
        'session.steer',
        'write',
        'Put a text into the turn that a member is in now. It is no message, and changes no Work.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('text', '--text', 'prose', True, None, None, False, '', 'what is typed'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'sweep': (
        'session.sweep',
        'live',
        'End what holds the terminals, and all below it; while a session needs it, name what is lost there.',
        (
        ),
    ),
    'terminal': (
        'session.terminal',
        'live',
        "Show what stands on the terminal of a member's process, and how to look on; what stood there last if it ended.",
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
        ),
    ),
    'token': (
        'session.token',
        'read',
        'Derive the capability of a session again, for the process that is launched with it.',
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that asks'),
        ),
    ),
    'type': (
        'session.type',
        'stream',
        "Step in at a member's terminal: until this is cancelled or its connection ends, nobody else types there.",
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
        ),
    ),
    'unbind': (
        'session.unbind',
        'write',
        "End the session of a person's own process; what it answers for stays with the member.",
        (
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session'),
        ),
    ),
}
