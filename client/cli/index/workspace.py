"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'archive': (
        'workspace.archive',
        'write',
        "Take a member's worktree away, unless something in it is in no commit; its branch stays, with every commit.",
        (
            ('path', '--path', 'str', True, None, None, False, 'folder', 'the worktree, by its path as it is listed'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'list': (
        'workspace.list',
        'live',
        'List the worktrees that members were given and that were not archived, with what git says of each.',
        (
            ('team_id', '--team-id', 'str', False, None, None, False, '', 'only of this team'),
        ),
    ),
}
