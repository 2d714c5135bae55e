"""Generated from the operation table by ``.ci/generate``; do not edit."""

DIGEST = '1ad079362d37d73e'

# noun: help
NOUNS = {
    'agent': 'Agent members: durable identities that join teams.',
    'event': 'What was committed, in order; waiting and watching.',
    'membership': 'Who takes part in which team, and as what.',
    'node': 'The daemon of this machine: start, stop, status, backup.',
    'project': 'Folders this node knows; a team belongs to one.',
    'team': 'Teams: durable, flat, one Host each.',
}

# code: (exit status, retry, meaning)
CODES = {
    'AGENT_MEMBER_PAUSED': (1, 'reread', 'The agent member is paused.'),
    'AGENT_MEMBER_RETIRED': (1, 'never', 'The agent member is retired for good.'),
    'CAPABILITY_DENIED': (1, 'never', 'The credential shown proves nobody here.'),
    'CURSOR_INVALID': (1, 'reread', 'The cursor belongs to another query or another store.'),
    'FILE_EXISTS': (1, 'never', 'A file of that name exists and is not overwritten.'),
    'FILE_UNUSABLE': (1, 'reread', 'The path cannot be used as asked.'),
    'FRAME_TOO_LARGE': (2, 'never', 'The request is larger than a frame may be.'),
    'HOST_REQUIRED': (1, 'reread', 'An active team needs exactly one active Host.'),
    'IDEMPOTENCY_KEY_REUSED': (1, 'never', 'The key was used for another request.'),
    'INTERNAL': (1, 'same', 'The daemon failed; its log says where.'),
    'INVALID_STATE_TRANSITION': (1, 'reread', 'The lifecycle has no such move from here.'),
    'LIMIT_EXCEEDED': (2, 'never', 'A value is larger than its limit.'),
    'MALFORMED': (2, 'never', 'The request does not have the declared shape.'),
    'MEMBERSHIP_EXISTS': (1, 'reread', 'The agent member already takes part in this team.'),
    'NAME_AMBIGUOUS': (1, 'reread', 'The name fits more than one record.'),
    'NAME_TAKEN': (1, 'reread', 'An active member of the team has this name.'),
    'NODE_DAEMON_DRAINING': (3, 'same', 'The daemon is stopping and takes nothing new.'),
    'NOT_AUTHORIZED': (1, 'never', 'The caller may not do this.'),
    'NOT_FOUND': (1, 'reread', 'No such record, or not one the caller may see.'),
    'OUTCOME_UNKNOWN': (5, 'same', 'The write may or may not have been kept.'),
    'PROTOCOL_UNSUPPORTED': (2, 'never', 'The two sides speak different protocol versions.'),
    'ROW_QUARANTINED': (5, 'reread', 'The stored record cannot be read and was set aside.'),
    'SOLE_HOST': (1, 'reread', 'The member is the only Host of an active team.'),
    'STORE_BUSY': (3, 'same', 'Another program holds the database locked; nothing was written.'),
    'STORE_CORRUPT': (5, 'reread', 'The database is damaged; writes have stopped.'),
    'STORE_FULL': (3, 'same', 'The disk is full; nothing was written.'),
    'STORE_IO_ERROR': (3, 'same', 'The disk failed; nothing was written.'),
    'STORE_READ_ONLY': (3, 'same', 'The disk is read-only; nothing was written.'),
    'TOO_MANY_REQUESTS': (3, 'same', 'The connection holds as many open requests as it may.'),
    'UNKNOWN_OPERATION': (2, 'never', 'This daemon has no such operation.'),
    'VERSION_CONFLICT': (1, 'reread', 'The record moved since it was read.'),
}
