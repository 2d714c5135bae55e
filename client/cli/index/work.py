"""Generated from the operation table by ``.ci/generate``; do not edit."""

# verb: (operation, effect, help, fields)
# field: (name, flag, kind, required, default, choices, many, path, help)
VERBS = {
    'accept': (
        'work.accept',
        'write',
        'Accept exactly the receipt that was reviewed. Grants no outside effect.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('receipt_id', '--receipt-id', 'str', True, None, None, False, '', 'the receipt that was reviewed'),
        ),
    ),
    'admit': (
        'work.admit',
        'write',
        'Admit one attempt: binding and delivery in one transaction.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('session_id', '--session-id', 'str', True, None, None, False, '', 'the session that shall act for it'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that admits'),
            ('lease_ms', '--lease-ms', 'int', False, 900000, None, False, '', 'awake milliseconds without a heartbeat'),
        ),
    ),
    'assign': (
        'work.assign',
        'write',
        'Make a member answer for an open Work; that starts nothing.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('membership_id', '--membership-id', 'str', True, None, None, False, '', 'who shall answer for it'),
        ),
    ),
    'block': (
        'work.block',
        'write',
        'Say that the Work cannot go on, and why.',
        (
            ('work_id', '--work-id', 'str', False, '', None, False, '', 'the Work; without one, the one delivered to the caller'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'what stands in the way'),
        ),
    ),
    'cancel': (
        'work.cancel',
        'write',
        'Close a Work as cancelled; nothing is concluded for the Works that need it.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'why'),
        ),
    ),
    'check': (
        'work.check',
        'write',
        'Record what a named check said of a submission.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('receipt_id', '--receipt-id', 'str', True, None, None, False, '', 'the submission it ran on'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that reports'),
            ('name', '--name', 'str', True, None, None, False, '', 'the check'),
            ('passed', '--passed', 'bool', True, None, None, False, '', 'whether it passed'),
            ('snapshot', '--snapshot', 'str', False, '', None, False, '', 'digest of the frozen snapshot it ran on'),
            ('revision', '--revision', 'str', False, '', None, False, '', 'the commit it ran on; empty where the submission names none'),
            ('log_digest', '--log-digest', 'str', False, '', None, False, '', 'digest of its log'),
        ),
    ),
    'claim': (
        'work.claim',
        'write',
        'Answer for an open Work oneself; that starts nothing.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'create': (
        'work.create',
        'write',
        'Create an open Work that nobody answers for yet.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run it is done in; a member's own when empty"),
            ('title', '--title', 'str', True, None, None, False, '', 'one bounded responsibility'),
            ('completion_criteria', '--completion-criteria', 'str', True, None, None, False, '', 'what a reviewer can check, one criterion a line'),
            ('context', '--context', 'str', False, '', None, False, '', 'why it exists, mental model, boundary'),
            ('claim_mode', '--claim-mode', 'str', False, 'team_claim', ('host_assign', 'team_claim'), False, '', 'who gives it away'),
            ('eligible_member_ids', '--eligible-member-id', 'str', False, (), None, True, '', 'who may claim it; everybody when none is named'),
            ('required_role', '--required-role', 'str', False, '', None, False, '', 'only a member with this role in the run may answer for it'),
            ('prerequisite_work_ids', '--prerequisite-work-id', 'str', False, (), None, True, '', 'Works that have to be accepted first'),
            ('priority', '--priority', 'str', False, 'normal', ('low', 'normal', 'high', 'urgent'), False, '', 'how urgent it is'),
            ('checks', '--check', 'str', False, (), None, True, '', 'checks that must pass on the submission, as NAME=COMMAND or NAME=limit=SECONDS COMMAND; words, no shell'),
            ('duplicate_ok', '--duplicate-ok', 'bool', False, False, None, False, '', 'allow an open Work of the same title'),
        ),
    ),
    'delivery': (
        'work.delivery',
        'write',
        'Report how far the delivery of a Work came.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('fence', '--fence', 'int', True, None, None, False, '', 'the fence of the attempt'),
            ('sup_gen', '--sup-gen', 'int', True, None, None, False, '', 'the supervisor generation that reports'),
            ('cause', '--cause', 'str', True, None, ('taken', 'held', 'received', 'failed'), False, '', 'what happened'),
            ('failure', '--failure', 'str', False, '', None, False, '', 'why it failed'),
        ),
    ),
    'fail': (
        'work.fail',
        'write',
        'Close a Work as failed; nothing is concluded for the Works that need it.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'why'),
        ),
    ),
    'graph': (
        'work.graph',
        'scan',
        'Show the Works of a run and what they need of each other.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; a member's own when empty"),
        ),
    ),
    'heartbeat': (
        'work.heartbeat',
        'write',
        'Say that the attempt is alive; an orphaned one that nobody reviewed comes back to its session.',
        (
            ('work_id', '--work-id', 'str', False, '', None, False, '', 'the Work; without one, the one delivered to the caller'),
            ('fence', '--fence', 'int', False, None, None, False, '', 'the fence of the attempt, to be certain which is meant'),
        ),
    ),
    'hold': (
        'work.hold',
        'write',
        'Put a Work on hold: no admission, start, submission or acceptance until it is taken off.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'why'),
        ),
    ),
    'list': (
        'work.list',
        'read',
        'List Works, the most urgent first, then the oldest.',
        (
            ('team_run_id', '--team-run-id', 'str', False, '', None, False, '', "the run; a member's own when empty"),
            ('phase', '--phase', 'str', False, None, ('open', 'active', 'review', 'closed'), False, '', 'only in this phase'),
            ('condition', '--condition', 'str', False, None, ('normal', 'blocked', 'on_hold'), False, '', 'only in this condition'),
            ('owner_id', '--owner-id', 'str', False, None, None, False, '', 'only of this membership'),
            ('limit', '--limit', 'int', False, 100, None, False, '', 'most rows'),
            ('cursor', '--cursor', 'str', False, '', None, False, '', 'continue after an earlier page'),
        ),
    ),
    'receipts': (
        'work.receipts',
        'read',
        'List the receipts of a Work after proving their chain.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
        ),
    ),
    'recover': (
        'work.recover',
        'write',
        'Review the custody of a lost attempt: say what it left behind, and open the Work again.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('fence', '--fence', 'int', True, None, None, False, '', 'the fence of the lost attempt'),
            ('finding', '--finding', 'str', True, None, ('NO_SIDE_EFFECTS', 'SIDE_EFFECTS_KEPT', 'SIDE_EFFECTS_REVERTED'), False, '', 'what was found'),
            ('responsibility', '--responsibility', 'str', True, None, ('keep', 'release'), False, '', 'whether its owner keeps it'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'why'),
            ('evidence_refs', '--evidence-ref', 'str', False, (), None, True, '', 'what shows it'),
        ),
    ),
    'redeliver': (
        'work.redeliver',
        'write',
        'Let a Work that never started be delivered again.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'release': (
        'work.release',
        'write',
        'Give the responsibility for an open Work back.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', False, '', None, False, '', 'why, for the record'),
        ),
    ),
    'replace-dependencies': (
        'work.replace-dependencies',
        'write',
        'Replace all prerequisites of a Work; none given clears them.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('prerequisite_work_ids', '--prerequisite-work-id', 'str', False, (), None, True, '', 'Works that have to be accepted first'),
        ),
    ),
    'request-changes': (
        'work.request-changes',
        'write',
        'Send a submitted Work back; its owner stays, the next attempt gets the next fence.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('reason', '--reason', 'str', True, None, None, False, '', 'what has to change'),
        ),
    ),
    'resume': (
        'work.resume',
        'write',
        'Say that a blocked Work goes on, and what resolved it.',
        (
            ('work_id', '--work-id', 'str', False, '', None, False, '', 'the Work; without one, the one delivered to the caller'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('resolution', '--resolution', 'str', True, None, None, False, '', 'what resolved it'),
        ),
    ),
    'retarget': (
        'work.retarget',
        'write',
        'Move a Work that is not closed to another run of the same team.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('successor_team_run_id', '--successor-team-run-id', 'str', True, None, None, False, '', 'the run to move it to'),
        ),
    ),
    'show': (
        'work.show',
        'read',
        'Show one Work with its attempts, deliveries and receipts.',
        (
            ('work_id', '--work-id', 'str', False, '', None, False, '', 'the Work; without one, the one delivered to the caller'),
        ),
    ),
    'start': (
        'work.start',
        'write',
        'Start the Work that was delivered to the caller.',
        (
            ('work_id', '--work-id', 'str', False, '', None, False, '', 'the Work; without one, the one delivered to the caller'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'submit': (
        'work.submit',
        'write',
        'Submit a Work with its evidence for review. Only acceptance makes it done.',
        (
            ('work_id', '--work-id', 'str', False, '', None, False, '', 'the Work; without one, the one delivered to the caller'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('result_summary', '--result-summary', 'str', True, None, None, False, '', 'result, summary, coverage, worktree, artifacts'),
            ('candidate_revision', '--candidate-revision', 'str', False, '', None, False, '', 'the commit submitted, 40 or 64 hex digits'),
            ('report_only', '--report-only', 'bool', False, False, None, False, '', 'there is no commit; the report is the result'),
            ('outcome', '--outcome', 'str', False, 'completed', ('completed', 'failed'), False, '', 'whether the attempt was done'),
            ('criteria', '--criterion', 'str', False, (), None, True, '', 'answers, as N=met|not_met|not_applicable[:note]; N is a line or a named check'),
            ('artifact_refs', '--artifact-ref', 'str', False, (), None, True, '', 'what came of it: URL or name@sha256:HEX'),
            ('check_refs', '--check-ref', 'str', False, (), None, True, '', 'what was run, with its exit status'),
        ),
    ),
    'unhold': (
        'work.unhold',
        'write',
        'Take a Work off hold; it is again what it was before.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
        ),
    ),
    'update': (
        'work.update',
        'write',
        'Change what a Work says; what is not given stays.',
        (
            ('work_id', '--work-id', 'str', True, None, None, False, '', 'the Work'),
            ('expected_version', '--expected-version', 'int', True, None, None, False, '', 'version last read'),
            ('title', '--title', 'str', False, None, None, False, '', 'new title'),
            ('context', '--context', 'str', False, None, None, False, '', 'new context'),
            ('completion_criteria', '--completion-criteria', 'str', False, None, None, False, '', 'new criteria, one a line'),
            ('priority', '--priority', 'str', False, None, ('low', 'normal', 'high', 'urgent'), False, '', 'new priority'),
            ('add_checks', '--add-check', 'str', False, (), None, True, '', 'one more check that must pass, as NAME=COMMAND or NAME=limit=SECONDS COMMAND; words, no shell'),
            ('remove_check', '--remove-check', 'str', False, None, None, False, '', 'take this named check away'),
        ),
    ),
}
