-- What a member that has nothing to do looks for, by whom it is for: Works of others and Works in hand are not in its way.

CREATE INDEX works_claimable ON works (team_run_id, eligible, required_role, place)
    WHERE phase = 'open' AND condition = 'normal' AND owner_id IS NULL AND claim_mode = 'team_claim';
