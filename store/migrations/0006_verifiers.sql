-- What a check was when it said what it said, so that another check of the same name does not take its result.

-- What ran so far is what the Work says today; a result of a check that it does not name any more belongs to none.
ALTER TABLE check_results ADD COLUMN line text NOT NULL DEFAULT '';

UPDATE check_results SET line = coalesce((
    SELECT c.value FROM receipts r JOIN works w ON w.id = r.work_id
    JOIN json_each(iif(json_valid(w.checks), w.checks, '[]')) c
    WHERE r.id = check_results.receipt_id AND c.type = 'text'
      AND substr(c.value, 1, instr(c.value, '=') - 1) = check_results.name
), '');
