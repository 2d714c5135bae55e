-- Titles as they are compared, and the questions that wait for an answer.

-- An index of works.title, kept by the same function that keeps that of works.needs. `casefold` is given by the program.
CREATE TABLE work_titles (
    work_id text PRIMARY KEY REFERENCES works (id),
    team_run_id text NOT NULL REFERENCES team_runs (id),
    folded text NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO work_titles (work_id, team_run_id, folded) SELECT id, team_run_id, casefold(title) FROM works;

CREATE INDEX work_titles_by_run ON work_titles (team_run_id, folded);
DROP INDEX works_by_title;

CREATE INDEX messages_questions ON messages (sender_id) WHERE kind = 'interaction_request';
