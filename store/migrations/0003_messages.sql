-- Messages and their deliveries.

CREATE TABLE messages (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    team_id text NOT NULL REFERENCES teams (id),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    sender_id text NOT NULL REFERENCES memberships (id),
    sender_agent_id text NOT NULL REFERENCES agents (id),
    kind text NOT NULL CHECK (kind IN
        ('message', 'reply', 'request_decision', 'interaction_request', 'interaction_response')),
    intent text NOT NULL CHECK (intent IN ('informational', 'response_required')),
    address text NOT NULL CHECK (address IN ('member', 'role', 'team')),
    body text NOT NULL CHECK (body <> ''),
    digest text NOT NULL CHECK (length(digest) = 64),
    options text NOT NULL,
    correlation_id text NOT NULL,
    causation_id text REFERENCES messages (id),
    work_id text REFERENCES works (id),
    evidence_refs text NOT NULL,
    expires_at integer,
    created_at integer NOT NULL
) STRICT;

CREATE INDEX messages_by_run ON messages (team_run_id);
CREATE INDEX messages_by_correlation ON messages (correlation_id);
-- Exactly one answer to an interaction request.
CREATE UNIQUE INDEX messages_one_answer ON messages (causation_id) WHERE kind = 'interaction_response';

CREATE TABLE message_deliveries (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    message_id text NOT NULL REFERENCES messages (id),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    recipient_id text REFERENCES memberships (id),
    role text NOT NULL,
    number integer NOT NULL CHECK (number >= 0),
    subscription_id text REFERENCES subscriptions (id),
    session_id text REFERENCES sessions (id),
    state text NOT NULL CHECK (state IN ('queued', 'routed', 'claimed', 'provider_received', 'acknowledged',
        'failed', 'expired', 'invalidated')),
    failures integer NOT NULL CHECK (failures >= 0),
    reason text NOT NULL,
    response text NOT NULL CHECK (response IN ('none', 'completed', 'rejected')),
    told integer NOT NULL CHECK (told IN (0, 1)),
    expires_at integer,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    CHECK (state NOT IN ('claimed', 'provider_received', 'acknowledged') OR recipient_id IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX message_deliveries_once ON message_deliveries (message_id, recipient_id)
    WHERE recipient_id IS NOT NULL;
CREATE INDEX message_deliveries_by_recipient ON message_deliveries (recipient_id);
-- Few rows of many. SQLite takes such an index only where a statement says the very same words.
CREATE INDEX message_deliveries_waiting ON message_deliveries (recipient_id, team_run_id)
    WHERE state IN ('queued', 'routed', 'claimed');
CREATE INDEX message_deliveries_unsettled ON message_deliveries (recipient_id)
    WHERE state IN ('queued', 'routed', 'claimed', 'provider_received');
CREATE INDEX message_deliveries_waiting_of_run ON message_deliveries (team_run_id)
    WHERE state IN ('queued', 'routed', 'claimed');
CREATE INDEX message_deliveries_unaddressed ON message_deliveries (team_run_id)
    WHERE recipient_id IS NULL AND state = 'queued';
CREATE INDEX message_deliveries_untold ON message_deliveries (team_run_id)
    WHERE state IN ('failed', 'expired', 'invalidated') AND told = 0;
CREATE INDEX message_deliveries_expiring ON message_deliveries (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('queued', 'routed', 'claimed');
CREATE INDEX message_deliveries_by_message ON message_deliveries (message_id);

-- Incidents that somebody has seen; they are not raised again.
CREATE TABLE attention_seen (
    team_run_id text NOT NULL REFERENCES team_runs (id),
    reader text NOT NULL,
    key text NOT NULL,
    at integer NOT NULL,
    PRIMARY KEY (team_run_id, reader, key)
) STRICT, WITHOUT ROWID;

-- The run an event belongs to, so that a run can be followed.
ALTER TABLE events ADD COLUMN run text;
CREATE INDEX events_by_run ON events (run, seq) WHERE run IS NOT NULL;

CREATE TABLE delegations (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    source_work_id text NOT NULL REFERENCES works (id),
    source_team_id text NOT NULL REFERENCES teams (id),
    target_team_id text NOT NULL REFERENCES teams (id),
    target_work_id text REFERENCES works (id),
    title text NOT NULL,
    context text NOT NULL,
    criteria text NOT NULL,
    state text NOT NULL CHECK (state IN ('proposed', 'accepted', 'declined', 'withdrawn')),
    reason text NOT NULL,
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    CHECK ((state = 'accepted') = (target_work_id IS NOT NULL)),
    CHECK (source_team_id <> target_team_id)
) STRICT;

CREATE INDEX delegations_by_source ON delegations (source_team_id);
CREATE INDEX delegations_by_target ON delegations (target_team_id);
CREATE INDEX delegations_by_run ON delegations (team_run_id);
