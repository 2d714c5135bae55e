"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'create': (
        'agent.create',
        'write',
        'Create an agent member, a durable identity that may join teams.',
        (
            ('name', '--name', 'str', True, None, None, False, '', 'what people call it'),
            ('description', '--description', 'prose', False, '', None, False, '', 'what it is for'),
            ('role', '--role', 'str', False, '', None, False, '', 'what it usually does, such as builder'),
            ('capabilities', '--capability', 'str', False, (), None, True, '', 'what it can do'),
            ('skills', '--skill', 'str', False, (), None, True, '', 'skills it carries'),
            ('profile', '--profile', 'str', False, 'external', None, False, '', 'which program runs it'),
            ('model', '--model', 'str', False, '', None, False, '', 'which model it prefers'),
            ('workspace', '--workspace', 'str', False, 'worktree', ('shared', 'staged', 'worktree'), False, '', 'where it works'),
            ('ceiling', '--ceiling', 'str', False, 'workspace_write', ('read_only', 'workspace_write', 'full_access'), False, '', 'the most it may be allowed; recorded, not enforced yet'),
        ),
    ),
    'list': (
        'agent.list',
        'read',
        'List agent members, oldest first.',
        (
            ('status', '--status', 'str', False, None, ('active', 'paused', 'retired'), False, '', 'only this status'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'pause': (
        'agent.pause',
        'write',
        'Pause an agent member: no new session and no claim until it is resumed.',
        (
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'resume': (
        'agent.resume',
        'write',
        'Resume a paused agent member.',
        (
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'retire': (
        'agent.retire',
        'write',
        'Retire an agent member for good; it leaves every team in which it is not the Host.',
        (
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'show': (
        'agent.show',
        'read',
        'Show one agent member.',
        (
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
        ),
    ),
    'update': (
        'agent.update',
        'write',
        'Change what is written about an agent member; what is not given stays.',
        (
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('name', '--name', 'str', False, None, None, False, '', 'new name'),
            ('description', '--description', 'prose', False, None, None, False, '', 'new description'),
            ('role', '--role', 'str', False, None, None, False, '', 'new usual role'),
            ('profile', '--profile', 'str', False, None, None, False, '', 'new program'),
            ('model', '--model', 'str', False, None, None, False, '', 'new preferred model'),
            ('workspace', '--workspace', 'str', False, None, ('shared', 'staged', 'worktree'), False, '', 'new workspace policy'),
            ('ceiling', '--ceiling', 'str', False, None, ('read_only', 'workspace_write', 'full_access'), False, '', 'new ceiling, for sessions opened from now on'),
        ),
    ),
}
