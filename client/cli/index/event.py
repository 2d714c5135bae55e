"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'list': (
        'event.list',
        'read',
        'List events, oldest first.',
        (
            ('stream', '--stream', 'str', False, '', None, False, '', 'only of this record, as noun/id'),
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', 'only of this run'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'wait': (
        'event.wait',
        'live',
        'Wait until something is true, such as team:ID.state=active or seq>41.',
        (
            ('predicate', '--predicate', 'str', True, None, None, False, '', 'NOUN:ID.FIELD=VALUE, NOUN:ID.version>N, team-run:ID.seq>N, inbox, or seq>N'),
            ('timeout_ms', '--timeout-ms', 'int', False, 600000, None, False, '', 'give up after this long, in milliseconds'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'answer with the events after this point'),
            ('limit', '--limit', 'int', False, 500, None, False, '', 'at most so many events; 0 for who only wants to know'),
        ),
    ),
    'watch': (
        'event.watch',
        'stream',
        'Follow events as they are committed, until cancelled.',
        (
            ('stream', '--stream', 'str', False, '', None, False, '', 'only of this record, as noun/id'),
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', 'only of this run'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'begin after this point; without one, with the next event'),
        ),
    ),
}
