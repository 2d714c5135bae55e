-- The verifier of a Work and what it says of a submission; what a check was when it said what it said.

-- Works that are there have no verifier.
ALTER TABLE works ADD COLUMN verifier_id text REFERENCES memberships (id);

CREATE TABLE verdicts (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    work_id text NOT NULL REFERENCES works (id),
    receipt_id text NOT NULL REFERENCES receipts (id),
    membership_id text NOT NULL REFERENCES memberships (id),
    outcome text NOT NULL CHECK (outcome IN ('passed', 'failed')),
    revision text NOT NULL,
    snapshot text NOT NULL,
    reason text NOT NULL CHECK (length(reason) <= 65536),
    evidence text NOT NULL,
    created_at integer NOT NULL,
    -- Said once of a submission.
    UNIQUE (receipt_id, membership_id)
) STRICT;

-- What was run so far is what the Work says today; a result of a check that it does not name any more is of none.
ALTER TABLE check_results ADD COLUMN line text NOT NULL DEFAULT '';

UPDATE check_results SET line = coalesce((
    SELECT c.value FROM receipts r JOIN works w ON w.id = r.work_id
    JOIN json_each(iif(json_valid(w.checks), w.checks, '[]')) c
    WHERE r.id = check_results.receipt_id AND c.type = 'text'
      AND substr(c.value, 1, instr(c.value, '=') - 1) = check_results.name
), '');
