-- Conversations that programs keep beyond their processes, and who goes on with which.

-- The program that ran a session. Sessions that are there have that of their member now; none has a conversation.
ALTER TABLE sessions ADD COLUMN profile text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN resumed_from text REFERENCES sessions (id);

UPDATE sessions SET profile = (SELECT a.profile FROM agents a WHERE a.id = sessions.agent_member_id);

-- Two sessions never share a conversation.
CREATE UNIQUE INDEX sessions_one_native ON sessions (native_session) WHERE native_session <> '' AND state <> 'closed';
CREATE INDEX sessions_by_native ON sessions (native_session) WHERE native_session <> '';

-- A launch that goes on with the conversation of its session; others begin it.
ALTER TABLE effects ADD COLUMN resumes integer NOT NULL
    CHECK (resumes IN (0, 1)) CHECK (resumes = 0 OR kind = 'launch') DEFAULT 0;

-- A place that was opened again for a new conversation, whatever it had before.
ALTER TABLE member_runs ADD COLUMN fresh integer NOT NULL CHECK (fresh IN (0, 1)) DEFAULT 0;
