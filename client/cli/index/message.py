"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'ack': (
        'message.ack',
        'write',
        "Confirm that a message was seen, or that one's own undeliverable mail was noticed.",
        (
            ('delivery_id', '--delivery-id', 'str', True, None, None, False, '', 'the delivery'),
        ),
    ),
    'answer': (
        'message.answer',
        'write',
        'Answer a question: one of its options, or text where it has none. The first answer wins.',
        (
            ('message_id', '--message-id', 'str', True, None, None, False, '', 'the question'),
            ('option', '--option', 'str', False, '', None, False, '', 'the chosen option'),
            ('response_text', '--response-text', 'prose', False, '', None, False, '', 'the answer in words'),
        ),
    ),
    'ask': (
        'message.ask',
        'write',
        'Put a question that takes exactly one answer to the Host.',
        (
            ('body', '--body', 'prose', True, None, None, False, '', 'the question'),
            ('options', '--option', 'str', False, (), None, True, '', 'the answers one can choose from; free text when none is given'),
            ('work_id', '--work-id', 'str', False, None, None, False, '', 'the Work it is about'),
        ),
    ),
    'claim': (
        'message.claim',
        'write',
        'Take a message to the team, or to a role that several have; whoever comes later gets nothing.',
        (
            ('delivery_id', '--delivery-id', 'str', True, None, None, False, '', 'the delivery'),
        ),
    ),
    'delivery': (
        'message.delivery',
        'write',
        'Report how far a message came.',
        (
            ('delivery_id', '--delivery-id', 'str', True, None, None, False, '', 'the delivery'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that reports'),
            ('cause', '--cause', 'str', True, None, ('routed', 'claimed', 'received', 'acknowledged', 'failed', 'expired', 'invalidated'), False, '', 'what happened'),
            ('session_id', '--session-id', 'str', False, None, None, False, '', 'the session it was routed to'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why it failed'),
        ),
    ),
    'inbox': (
        'message.inbox',
        'read',
        "Show the caller's mail, oldest first; reading changes nothing.",
        (
            ('all_mail', '--all-mail', 'bool', False, False, None, False, '', 'also what was acknowledged'),
            ('limit', '--limit', 'int', False, 50, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'list': (
        'message.list',
        'read',
        'List the messages of a run that the caller may see, oldest first.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
            ('correlation_id', '--correlation-id', 'str', False, None, None, False, '', 'only this conversation'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'receive': (
        'message.receive',
        'write',
        'Take the mail that waits: it is delivered to the process that asks.',
        (
            ('limit', '--limit', 'int', False, 20, None, False, '', 'most messages'),
        ),
    ),
    'reply': (
        'message.reply',
        'write',
        'Reply to a message on its correlation id; it goes to its sender.',
        (
            ('causation_id', '--causation-id', 'str', True, None, None, False, '', 'the message replied to'),
            ('body', '--body', 'prose', True, None, None, False, '', 'what to say, as Markdown'),
            ('correlation_id', '--correlation-id', 'str', False, None, None, False, '', 'must be that of the message, when given'),
            ('response_required', '--response-required', 'bool', False, False, None, False, '', 'an answer or an action is needed'),
            ('evidence_refs', '--evidence-ref', 'str', False, (), None, True, '', 'references instead of large content'),
        ),
    ),
    'respond': (
        'message.respond',
        'write',
        'Say once that what a message asked is completed or rejected; no Work changes by it.',
        (
            ('delivery_id', '--delivery-id', 'str', True, None, None, False, '', 'the delivery'),
            ('response', '--response', 'str', True, None, ('none', 'completed', 'rejected'), False, '', 'completed or rejected'),
        ),
    ),
    'send': (
        'message.send',
        'write',
        'Send a message to members, to a role instance or to the whole team of a run.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; the caller's own when empty"),
            ('body', '--body', 'prose', True, None, None, False, '', 'what to say, as Markdown'),
            ('recipients', '--recipient', 'str', False, (), None, True, '', 'members of the team, by membership id, member id or unique name'),
            ('to_team', '--to-team', 'bool', False, False, None, False, '', 'to the team: one member takes it'),
            ('to_role', '--to-role', 'str', False, '', None, False, '', 'to this role; with to_number to one instance of it'),
            ('to_number', '--to-number', 'int', False, 0, None, False, '', 'the number of the role instance'),
            ('response_required', '--response-required', 'bool', False, False, None, False, '', 'an answer or an action is needed; wakes an idle recipient'),
            ('request_decision', '--request-decision', 'bool', False, False, None, False, '', 'a decision is asked for'),
            ('work_id', '--work-id', 'str', False, None, None, False, '', 'the Work it is about'),
            ('correlation_id', '--correlation-id', 'str', False, None, None, False, '', 'the conversation it belongs to'),
            ('causation_id', '--causation-id', 'str', False, None, None, False, '', 'the message it follows from'),
            ('evidence_refs', '--evidence-ref', 'str', False, (), None, True, '', 'references instead of large content'),
            ('expires_in_ms', '--expires-in-ms', 'int', False, None, None, False, '', 'give up when not received within this'),
        ),
    ),
    'show': (
        'message.show',
        'read',
        'Show one message and how far each delivery came.',
        (
            ('message_id', '--message-id', 'str', True, None, None, False, '', 'the message'),
        ),
    ),
}
