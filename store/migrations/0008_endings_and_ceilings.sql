-- How a run ends, and what a session may be allowed.

-- A run that was told to complete as soon as its Works are closed. Runs that are there wait until somebody says so.
ALTER TABLE team_runs ADD COLUMN completing integer NOT NULL CHECK (completing IN (0, 1)) DEFAULT 0;

-- The ceiling of a session, frozen when it is opened. Sessions that are there have that of their member now.
ALTER TABLE sessions ADD COLUMN ceiling text NOT NULL
    CHECK (ceiling IN ('read_only', 'workspace_write', 'full_access')) DEFAULT 'workspace_write';

UPDATE sessions SET ceiling = (SELECT a.ceiling FROM agents a WHERE a.id = sessions.agent_member_id);
