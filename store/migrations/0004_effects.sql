-- What is done to processes: recorded before it is done, settled after it was read back.

CREATE TABLE effects (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    session_id text NOT NULL REFERENCES sessions (id),
    session_gen integer NOT NULL CHECK (session_gen >= 1),
    sup_gen integer NOT NULL CHECK (sup_gen >= 0),
    kind text NOT NULL CHECK (kind IN ('launch', 'interrupt', 'stop')),
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
    CHECK ((state = 'settled') = (settled_at IS NOT NULL)),
    CHECK ((state = 'settled') = (certainty <> 'unknown')),
    CHECK ((pid = 0) = (boot_id = '')),
    CHECK ((kind = 'launch') = (cwd <> ''))
) STRICT;

CREATE INDEX effects_by_run ON effects (team_run_id);
CREATE INDEX effects_by_session ON effects (session_id, kind);
-- One of a kind at a time: the lock of a launch is this row.
CREATE UNIQUE INDEX effects_one_unsettled ON effects (session_id, kind) WHERE state <> 'settled';
CREATE INDEX effects_unsettled_of_run ON effects (team_run_id) WHERE state = 'prepared';
