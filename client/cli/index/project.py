"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'add': (
        'project.add',
        'write',
        'Make a folder known to this node; adding it again answers the same project.',
        (
            ('root', '--root', 'str', True, None, None, False, 'folder', 'the folder'),
        ),
    ),
    'list': (
        'project.list',
        'read',
        'List the projects of this node, oldest first.',
        (
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'show': (
        'project.show',
        'read',
        'Show one project.',
        (
            ('project_id', '--project-id', 'str', True, None, None, False, '', 'the project'),
        ),
    ),
}
