-- When what was said in a run was taken out of the database. Nobody has done so with runs that are there.

ALTER TABLE team_runs ADD COLUMN purged_at integer;
