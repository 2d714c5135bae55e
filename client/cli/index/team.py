"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'activate': (
        'team.activate',
        'write',
        'Make an inactive team active again; it needs its Host.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'create': (
        'team.create',
        'write',
        'Create an active team with its Host.',
        (
            ('name', '--name', 'str', True, None, None, False, '', 'what people call it'),
            ('host_agent_id', '--host-agent-id', 'str', True, None, None, False, '', 'its Host, by id or unique name'),
            ('project', '--project', 'str', True, None, None, False, 'folder', 'the folder it works in'),
            ('description', '--description', 'prose', False, '', None, False, '', 'what it is for'),
        ),
    ),
    'deactivate': (
        'team.deactivate',
        'write',
        'Set an active team aside; members and Host stay.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'hand-over': (
        'team.hand-over',
        'write',
        'Make another active member the Host; the former Host becomes a member.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('to_agent_id', '--to-agent-id', 'str', True, None, None, False, '', 'the new Host, by id or unique name'),
        ),
    ),
    'list': (
        'team.list',
        'read',
        'List teams, oldest first.',
        (
            ('state', '--state', 'str', False, None, ('active', 'inactive', 'trashed'), False, '', 'only in this state'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'restore': (
        'team.restore',
        'write',
        'Take a team out of the trash; it comes back inactive.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'show': (
        'team.show',
        'read',
        'Show one team and its members.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
        ),
    ),
    'trash': (
        'team.trash',
        'write',
        'Put an inactive team in the trash; nothing is deleted.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'update': (
        'team.update',
        'write',
        "Change a team's name or description; what is not given stays.",
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('name', '--name', 'str', False, None, None, False, '', 'new name'),
            ('description', '--description', 'prose', False, None, None, False, '', 'new description'),
        ),
    ),
}
