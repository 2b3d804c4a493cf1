-- name: point_rowid
SELECT * FROM t WHERE id = {0.5};

-- name: point_rowid_none
SELECT * FROM t WHERE id = {2+7};

-- name: point_unique
SELECT id, x FROM t WHERE a = {0.3};

-- name: point_text
SELECT id, x FROM t WHERE s = 'name00000042';

-- name: point_param
-- bind: {0.4}
SELECT * FROM t WHERE id = ?;

-- name: point_param_text
-- bind: 'name00000017'
SELECT id FROM t WHERE s = ?;

-- name: point_expr
SELECT x + 1 FROM t WHERE id = {0.5} + 1;

-- name: point_count
SELECT count(*) FROM t WHERE id = {0.5};

-- name: point_two
SELECT t.x, d.name FROM t JOIN d ON d.id = t.d WHERE t.id = {0.5};

-- name: point_key_pair
SELECT v FROM w WHERE g = 3 AND h = 17;

-- name: point_and_more
SELECT id FROM t WHERE a = {0.3} AND y > 100;

-- name: equal_k
SELECT id, ts, x FROM t WHERE k = 3;

-- name: equal_k_sum
SELECT sum(x), count(*) FROM t WHERE k = 3;

-- name: equal_k_param
-- bind: 3
SELECT sum(x) FROM t WHERE k = ?;

-- name: equal_y
SELECT sum(x) FROM t WHERE y = 500;

-- name: equal_rare
SELECT id, s FROM t WHERE z = 1;

-- name: equal_common
SELECT count(*), sum(x) FROM t WHERE c = 'red';

-- name: equal_uncommon
SELECT count(*), sum(x) FROM t WHERE c = 'pink';

-- name: equal_none
SELECT count(*) FROM t WHERE c = 'purple';

-- name: equal_real
SELECT id FROM t WHERE x = 17.25;

-- name: equal_null
SELECT count(*) FROM t WHERE u IS NULL;

-- name: equal_w
SELECT sum(v) FROM w WHERE g = 5;
