-- name: exists_early
SELECT EXISTS(SELECT 1 FROM t WHERE x > 3);

-- name: exists_first
SELECT EXISTS(SELECT 1 FROM t);

-- name: exists_indexed
SELECT EXISTS(SELECT 1 FROM t WHERE k = 3);

-- name: exists_none
SELECT EXISTS(SELECT 1 FROM t WHERE x > 5000);

-- name: exists_none_indexed
SELECT EXISTS(SELECT 1 FROM t WHERE c = 'purple');

-- name: exists_in_where
SELECT count(*) FROM d WHERE EXISTS(SELECT 1 FROM t WHERE t.d = d.id);

-- name: exists_few
SELECT count(*) FROM d WHERE id < 20 AND EXISTS(SELECT 1 FROM t WHERE t.d = d.id);

-- name: not_exists
SELECT count(*) FROM t WHERE id < 200 AND NOT EXISTS(SELECT 1 FROM e WHERE e.t = t.id);

-- name: not_exists_all
SELECT count(*) FROM t WHERE NOT EXISTS(SELECT 1 FROM e WHERE e.t = t.id);

-- name: exists_late
SELECT EXISTS(SELECT 1 FROM t WHERE id > {0.99} AND y = 3);

-- name: exists_limit
SELECT 1 FROM t WHERE y = 77 LIMIT 1;

-- name: exists_case
SELECT CASE WHEN EXISTS(SELECT 1 FROM t WHERE y < 50) THEN 'yes' ELSE 'no' END;

-- name: exists_two
SELECT EXISTS(SELECT 1 FROM t WHERE y = 5), EXISTS(SELECT 1 FROM e WHERE q = 5);

-- name: exists_param
-- bind: 'name00000005'
SELECT EXISTS(SELECT 1 FROM t WHERE s = ?);
