-- Runs, places in them, sessions and their capabilities; Works, attempts, deliveries, receipts, check results.

CREATE TABLE team_runs (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_id text NOT NULL REFERENCES teams (id),
    objective text NOT NULL,
    state text NOT NULL CHECK (state IN ('planned', 'running', 'draining', 'completed', 'cancelled')),
    recovery text NOT NULL,
    sup_gen integer NOT NULL CHECK (sup_gen >= 0),
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    ended_at integer,
    CHECK ((state IN ('completed', 'cancelled')) = (ended_at IS NOT NULL))
) STRICT;

CREATE INDEX team_runs_by_team ON team_runs (team_id);

CREATE TABLE member_runs (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    membership_id text NOT NULL REFERENCES memberships (id),
    agent_member_id text NOT NULL REFERENCES agents (id),
    role text NOT NULL,
    number integer NOT NULL CHECK (number >= 1),
    coordination text NOT NULL CHECK (coordination IN ('active', 'closed', 'retired')),
    run_gen integer NOT NULL CHECK (run_gen >= 1),
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    UNIQUE (team_run_id, role, number)
) STRICT;

-- One place of a membership in a run that it has not left for good.
CREATE UNIQUE INDEX member_runs_one_place ON member_runs (team_run_id, membership_id) WHERE coordination <> 'retired';
CREATE INDEX member_runs_by_agent ON member_runs (agent_member_id);

CREATE TABLE sessions (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    agent_member_id text NOT NULL REFERENCES agents (id),
    member_run_id text NOT NULL REFERENCES member_runs (id),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    session_gen integer NOT NULL CHECK (session_gen >= 1),
    run_gen integer NOT NULL CHECK (run_gen >= 1),
    sup_gen integer NOT NULL CHECK (sup_gen >= 0),
    daemon_gen integer NOT NULL CHECK (daemon_gen >= 1),
    state text NOT NULL CHECK (state IN ('cold', 'idle', 'active', 'interrupted', 'recovery_required', 'closed')),
    driver text NOT NULL CHECK (driver IN ('host_driven', 'user_driven')),
    process text NOT NULL CHECK (process IN ('live', 'stopped', 'unknown')),
    pid integer NOT NULL CHECK (pid >= 0),
    start_ticks integer NOT NULL CHECK (start_ticks >= 0),
    boot_id text NOT NULL,
    native_session text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    closed_at integer,
    CHECK ((state = 'closed') = (closed_at IS NOT NULL)),
    CHECK ((pid = 0) = (boot_id = '')),
    UNIQUE (agent_member_id, session_gen)
) STRICT;

-- One session of a member that is not closed.
CREATE UNIQUE INDEX sessions_one_open ON sessions (agent_member_id) WHERE state <> 'closed';
CREATE UNIQUE INDEX sessions_one_process ON sessions (pid, start_ticks, boot_id) WHERE pid > 0 AND state <> 'closed';
CREATE INDEX sessions_by_place ON sessions (member_run_id);
CREATE INDEX sessions_by_run ON sessions (team_run_id);

CREATE TABLE capabilities (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    session_id text NOT NULL UNIQUE REFERENCES sessions (id),
    token_sha256 text NOT NULL UNIQUE,
    daemon_gen integer NOT NULL CHECK (daemon_gen >= 1),
    sup_gen integer NOT NULL CHECK (sup_gen >= 0),
    state text NOT NULL CHECK (state IN ('active', 'replaced', 'revoked')),
    accepts_new_claims integer NOT NULL CHECK (accepts_new_claims IN (0, 1)),
    expires_at integer,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

CREATE TABLE works (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_id text NOT NULL REFERENCES teams (id),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    owner_id text REFERENCES memberships (id),
    title text NOT NULL CHECK (title <> ''),
    context text NOT NULL,
    criteria text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('open', 'active', 'review', 'closed')),
    condition text NOT NULL CHECK (condition IN ('normal', 'blocked', 'on_hold')),
    held text CHECK (held IN ('normal', 'blocked')),
    resolution text CHECK (resolution IN ('accepted', 'cancelled', 'failed')),
    claim_mode text NOT NULL CHECK (claim_mode IN ('host_assign', 'team_claim')),
    eligible text NOT NULL,
    required_role text NOT NULL,
    priority text NOT NULL CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    needs text NOT NULL,
    checks text NOT NULL,
    reason text NOT NULL,
    result_summary text NOT NULL,
    receipt_id text,
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    -- Where it stands in lists: the most urgent first, then the oldest.
    place integer GENERATED ALWAYS AS (
        (CASE priority WHEN 'urgent' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END) * 1099511627776 + n
    ) VIRTUAL,
    CHECK ((phase = 'closed') = (resolution IS NOT NULL)),
    CHECK (phase <> 'closed' OR condition = 'normal'),
    CHECK ((condition = 'on_hold') = (held IS NOT NULL)),
    CHECK (condition <> 'blocked' OR phase = 'active'),
    CHECK (held IS NOT 'blocked' OR phase = 'active'),
    CHECK (phase NOT IN ('active', 'review') OR owner_id IS NOT NULL)
) STRICT;

CREATE INDEX works_by_run ON works (team_run_id, place);
CREATE INDEX works_by_standing ON works (team_run_id, phase, condition);
CREATE INDEX works_by_owner ON works (owner_id, phase);
CREATE INDEX works_open_of_team ON works (team_id) WHERE phase <> 'closed';
CREATE INDEX works_by_title ON works (team_run_id, lower(title)) WHERE phase <> 'closed';

-- An index of works.needs, kept by the same function that writes it.
CREATE TABLE work_needs (
    work_id text NOT NULL REFERENCES works (id),
    needs_id text NOT NULL REFERENCES works (id),
    PRIMARY KEY (work_id, needs_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX work_needs_backwards ON work_needs (needs_id);

CREATE TABLE bindings (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    work_id text NOT NULL REFERENCES works (id),
    fence integer NOT NULL CHECK (fence >= 1),
    membership_id text NOT NULL REFERENCES memberships (id),
    member_run_id text NOT NULL REFERENCES member_runs (id),
    run_gen integer NOT NULL CHECK (run_gen >= 1),
    session_id text NOT NULL REFERENCES sessions (id),
    session_gen integer NOT NULL CHECK (session_gen >= 1),
    custody text NOT NULL
        CHECK (custody IN ('claimed', 'released', 'completed', 'orphaned_unverified', 'handed_over')),
    lease_ms integer NOT NULL CHECK (lease_ms > 0),
    reason text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    UNIQUE (work_id, fence)
) STRICT;

-- One live attempt at a Work.
CREATE UNIQUE INDEX bindings_one_live ON bindings (work_id) WHERE custody IN ('claimed', 'orphaned_unverified');
CREATE INDEX bindings_live_of_session ON bindings (session_id) WHERE custody IN ('claimed', 'orphaned_unverified');
CREATE INDEX bindings_live_of_membership ON bindings (membership_id)
    WHERE custody IN ('claimed', 'orphaned_unverified');

CREATE TABLE work_deliveries (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    work_id text NOT NULL REFERENCES works (id),
    binding_id text NOT NULL UNIQUE REFERENCES bindings (id),
    session_id text NOT NULL REFERENCES sessions (id),
    state text NOT NULL CHECK (state IN ('queued', 'claimed', 'provider_received', 'failed')),
    failure text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

CREATE INDEX work_deliveries_by_work ON work_deliveries (work_id);

CREATE TABLE receipts (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    work_id text NOT NULL REFERENCES works (id),
    fence integer NOT NULL CHECK (fence >= 1),
    number integer NOT NULL CHECK (number >= 1),
    outcome text NOT NULL CHECK (outcome IN ('completed', 'failed')),
    body text NOT NULL CHECK (length(body) <= 65536),
    digest text NOT NULL CHECK (length(digest) = 64),
    previous text NOT NULL,
    created_by text NOT NULL REFERENCES agents (id),
    created_at integer NOT NULL,
    UNIQUE (work_id, number)
) STRICT;

CREATE TABLE check_results (
    receipt_id text NOT NULL REFERENCES receipts (id),
    name text NOT NULL,
    passed integer NOT NULL CHECK (passed IN (0, 1)),
    snapshot text NOT NULL,
    log_digest text NOT NULL,
    at integer NOT NULL,
    PRIMARY KEY (receipt_id, name)
) STRICT, WITHOUT ROWID;
