-- The node, its projects, agent members, teams and memberships; events, remembered replies, quarantine.
-- `n` numbers rows in the order they were written and survives VACUUM; lists page by it.

CREATE TABLE node (
    one integer PRIMARY KEY CHECK (one = 1),
    node_id text NOT NULL,
    store_id text NOT NULL,
    daemon_gen integer NOT NULL CHECK (daemon_gen >= 0),
    -- Every generation is issued above this; a restore raises it above any generation ever issued.
    generation_floor integer NOT NULL DEFAULT 0 CHECK (generation_floor >= 0),
    -- 1 while a daemon has the store open; still 1 at a start means the last one ended uncleanly.
    open integer NOT NULL DEFAULT 0 CHECK (open IN (0, 1)),
    -- Counted up by the small commit that proves a failed batch absent.
    probe integer NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE projects (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    root text NOT NULL UNIQUE,
    git_dir text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

CREATE TABLE agents (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    name text NOT NULL CHECK (name <> ''),
    description text NOT NULL,
    role text NOT NULL,
    capabilities text NOT NULL,
    skills text NOT NULL,
    profile text NOT NULL,
    model text NOT NULL,
    workspace text NOT NULL CHECK (workspace IN ('shared', 'staged', 'worktree')),
    ceiling text NOT NULL CHECK (ceiling IN ('read_only', 'workspace_write', 'full_access')),
    status text NOT NULL CHECK (status IN ('active', 'paused', 'retired')),
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

CREATE INDEX agents_by_name ON agents (name);

CREATE TABLE teams (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    name text NOT NULL CHECK (name <> ''),
    description text NOT NULL,
    project_id text NOT NULL REFERENCES projects (id),
    node_id text NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'inactive', 'trashed')),
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

CREATE INDEX teams_by_name ON teams (name);

CREATE TABLE memberships (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version integer NOT NULL CHECK (version >= 1),
    team_id text NOT NULL REFERENCES teams (id),
    agent_member_id text NOT NULL REFERENCES agents (id),
    role text NOT NULL CHECK (role IN ('host', 'member', 'observer')),
    state text NOT NULL CHECK (state IN ('invited', 'active', 'leaving', 'inactive')),
    member_gen integer NOT NULL CHECK (member_gen >= 1),
    created_by text NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    joined_at integer,
    left_at integer,
    CHECK ((state = 'inactive') = (left_at IS NOT NULL)),
    CHECK (state NOT IN ('active', 'leaving') OR joined_at IS NOT NULL),
    CHECK (role <> 'host' OR state IN ('active', 'inactive'))
) STRICT;

-- One Host a team; it stays while the team is set aside.
CREATE UNIQUE INDEX memberships_one_host ON memberships (team_id) WHERE role = 'host' AND state = 'active';
-- One membership of a pair that has not ended.
CREATE UNIQUE INDEX memberships_one_open ON memberships (team_id, agent_member_id) WHERE state <> 'inactive';
CREATE UNIQUE INDEX memberships_gen ON memberships (team_id, agent_member_id, member_gen);
CREATE INDEX memberships_by_agent ON memberships (agent_member_id);

CREATE TABLE subscriptions (
    n integer PRIMARY KEY,
    id text NOT NULL UNIQUE,
    membership_id text NOT NULL REFERENCES memberships (id),
    source text NOT NULL CHECK (source IN ('agent', 'team')),
    source_id text NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'revoked')),
    UNIQUE (membership_id, source, source_id)
) STRICT;

CREATE TABLE events (
    seq integer PRIMARY KEY,
    at integer NOT NULL,
    stream text NOT NULL,
    version integer NOT NULL CHECK (version >= 1),
    kind text NOT NULL,
    actor text NOT NULL,
    body blob NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_stream ON events (stream, version);

CREATE TABLE replies (
    n integer PRIMARY KEY,
    mark blob NOT NULL UNIQUE CHECK (length(mark) = 16),
    digest blob NOT NULL CHECK (length(digest) = 32),
    answer blob NOT NULL,
    at integer NOT NULL
) STRICT;

CREATE INDEX replies_by_age ON replies (at);

-- Stored records that do not decode, named "<table>/<row>".
CREATE TABLE quarantine (
    record text PRIMARY KEY,
    why text NOT NULL,
    since integer NOT NULL
) STRICT;
