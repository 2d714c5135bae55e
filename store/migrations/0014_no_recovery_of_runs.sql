-- Why a run needs somebody is read from its sessions and effects (attention); a copy of that in the run was never filled.

ALTER TABLE team_runs DROP COLUMN recovery;
