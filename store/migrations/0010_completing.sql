-- A run that was told to complete as soon as its Works are closed; its supervisor ends its sessions first.
-- Runs that are there wait until somebody completes them.

ALTER TABLE team_runs ADD COLUMN completing integer NOT NULL CHECK (completing IN (0, 1)) DEFAULT 0;
