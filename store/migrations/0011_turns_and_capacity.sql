-- What an agent's own hooks and records say: its turn, how a cycle failed, what its provider still gives. And how many
-- cycles of a run may be under way at once.

CREATE TABLE effects_before AS SELECT * FROM effects;
DROP TABLE effects;

CREATE TABLE effects (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    session_id text NOT NULL REFERENCES sessions (id),
    session_gen integer NOT NULL CHECK (session_gen >= 1),
    sup_gen integer NOT NULL CHECK (sup_gen >= 0),
    kind text NOT NULL CHECK (kind IN ('launch', 'interrupt', 'stop', 'deliver', 'steer', 'archive')),
    state text NOT NULL CHECK (state IN ('prepared', 'settled', 'recovery_required')),
    certainty text NOT NULL CHECK (certainty IN ('unknown', 'applied', 'not_applied')),
    cwd text NOT NULL,
    pane text NOT NULL,
    pid integer NOT NULL CHECK (pid >= 0),
    start_ticks integer NOT NULL CHECK (start_ticks >= 0),
    boot_id text NOT NULL,
    readback text NOT NULL,
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    settled_at integer,
    wake text CHECK (wake IN ('delivery', 'continue', 'probation', 'accepted', 'claimable', 'mail')),
    work_id text REFERENCES works (id),
    work_version integer NOT NULL CHECK (work_version >= 0),
    text text NOT NULL,
    ending text CHECK (ending IN ('completed', 'empty_output', 'interrupted_by_host', 'interrupted_by_provider',
        'closed', 'provider_failed', 'transport_lost', 'terminal_unobserved')),
    resumes integer NOT NULL CHECK (resumes IN (0, 1)),
    failure text CHECK (failure IN ('quota_exhausted', 'unauthorized', 'output_limit', 'refusal',
        'turn_request_limit', 'runner_error', 'turn_failed')),
    after_turn integer NOT NULL CHECK (after_turn >= 0),
    CHECK ((state = 'settled') = (settled_at IS NOT NULL)),
    CHECK ((state = 'settled') = (certainty <> 'unknown')),
    CHECK ((pid = 0) = (boot_id = '')),
    CHECK ((kind IN ('launch', 'archive')) = (cwd <> '')),
    CHECK ((kind = 'deliver') = (wake IS NOT NULL)),
    CHECK ((kind = 'steer') = (text <> '')),
    CHECK ((work_id IS NULL) = (work_version = 0)),
    CHECK (ending IS NULL OR (kind = 'deliver' AND certainty = 'applied')),
    CHECK (resumes = 0 OR kind = 'launch'),
    CHECK (failure IS NULL OR ending = 'provider_failed')
) STRICT;

-- Cycles of before that failed did so with the end of their process: nothing else was read.
INSERT INTO effects SELECT *, iif(ending = 'provider_failed', 'runner_error', NULL), 0 FROM effects_before;
DROP TABLE effects_before;

CREATE INDEX effects_by_run ON effects (team_run_id);
CREATE INDEX effects_by_session ON effects (session_id, kind);
-- One of a kind at a time: the lock of a launch, and of whatever is typed, is this row.
CREATE UNIQUE INDEX effects_one_unsettled ON effects (session_id, kind) WHERE state <> 'settled';
CREATE INDEX effects_unsettled_of_run ON effects (team_run_id) WHERE state = 'prepared';
-- A cycle begins with the text that was taken, and has one ending.
CREATE INDEX effects_cycles ON effects (session_id)
    WHERE kind = 'deliver' AND certainty = 'applied' AND ending IS NULL;
-- Few at any time; the daemon looks for them at each change of an effect.
CREATE INDEX effects_archives ON effects (session_id) WHERE kind = 'archive' AND state = 'prepared';

-- Nothing was heard of the turns and the capacity of sessions that are there.
ALTER TABLE sessions ADD COLUMN activity text NOT NULL
    CHECK (activity IN ('unknown', 'running', 'waiting_input', 'idle')) DEFAULT 'unknown';
ALTER TABLE sessions ADD COLUMN activity_at integer;
ALTER TABLE sessions ADD COLUMN activity_source text CHECK (activity_source IN ('hook', 'terminal'));
ALTER TABLE sessions ADD COLUMN turn text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN turn_begun integer NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turn_ended integer NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN capacity text NOT NULL
    CHECK (capacity IN ('available', 'limited', 'exhausted', 'unauthorized', 'unknown')) DEFAULT 'unknown';
ALTER TABLE sessions ADD COLUMN capacity_at integer;
ALTER TABLE sessions ADD COLUMN capacity_source text NOT NULL DEFAULT '';

-- Runs that are there had no limit; they get the usual one.
ALTER TABLE team_runs ADD COLUMN cycles integer NOT NULL DEFAULT 4;
