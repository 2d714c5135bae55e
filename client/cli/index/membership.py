"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'invite': (
        'membership.invite',
        'write',
        'Invite an agent member to a team; it takes part once it joins.',
        (
            ('team_id', '--team-id', 'str', True, None, None, False, '', 'the team, by id or unique name'),
            ('agent_member_id', '--agent-member-id', 'str', True, None, None, False, '', 'the member, by id or unique name'),
            ('role', '--role', 'str', False, 'member', ('member', 'observer'), False, '', 'as what'),
        ),
    ),
    'join': (
        'membership.join',
        'write',
        'Accept an invitation: the membership and its subscriptions become active together.',
        (
            ('membership_id', '--membership-id', 'str', True, None, None, False, '', 'the invitation'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'leave': (
        'membership.leave',
        'write',
        'End a membership or decline an invitation; its subscriptions are revoked with it.',
        (
            ('membership_id', '--membership-id', 'str', True, None, None, False, '', 'the membership'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'list': (
        'membership.list',
        'read',
        'List memberships, oldest first.',
        (
            ('team_id', '--team-id', 'str', False, None, None, False, '', 'only of this team'),
            ('agent_member_id', '--agent-member-id', 'str', False, None, None, False, '', 'only of this member'),
            ('state', '--state', 'str', False, None, ('invited', 'active', 'leaving', 'inactive'), False, '', 'only in this state'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'show': (
        'membership.show',
        'read',
        'Show one membership and its subscriptions.',
        (
            ('membership_id', '--membership-id', 'str', True, None, None, False, '', 'the membership'),
        ),
    ),
}
