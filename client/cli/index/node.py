"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'backup': (
        'node.backup',
        'live',
        'Write a copy of the whole database to a new file while the daemon runs.',
        (
            ('file', '--file', 'str', True, None, None, False, 'file', 'the file to make; must not exist'),
        ),
    ),
    'quarantine': (
        'node.quarantine',
        'read',
        'List stored records that could not be read and were set aside.',
        (
        ),
    ),
    'release': (
        'node.release',
        'write',
        'Read a record that was set aside again; if it can be read now, it is back.',
        (
            ('record', '--record', 'str', True, None, None, False, '', 'the record, as the list names it'),
        ),
    ),
    'status': (
        'node.status',
        'live',
        'Say what is wrong with the daemon, since when, and what lifts it.',
        (
        ),
    ),
    'stop': (
        'node.stop',
        'live',
        'Drain the daemon and end it; nothing that was acknowledged is lost.',
        (
        ),
    ),
}
