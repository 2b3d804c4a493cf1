-- name: in_three
SELECT sum(x) FROM t WHERE id IN (5, 17, {0.5});

-- name: in_text
SELECT count(*) FROM t WHERE s IN ('name00000001', 'name00000002', 'name00000003');

-- name: in_k
SELECT sum(x) FROM t WHERE k IN (1, 2, 3, 4);

-- name: in_c
SELECT count(*), sum(x) FROM t WHERE c IN ('pink', 'grey');

-- name: in_params
-- bind: 3 {0.1} {0.9}
SELECT sum(x) FROM t WHERE id IN (?, ?, ?);

-- name: in_many
SELECT sum(x) FROM t WHERE a IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25);

-- name: not_in
SELECT count(*) FROM t WHERE y NOT IN (1, 2, 3);

-- name: in_and_range
SELECT count(*) FROM t WHERE k IN (1, 2) AND ts > 1600000000 + {5};

-- name: or_two_indexes
SELECT count(*), sum(x) FROM t WHERE a = 5 OR s = 'name00000009';

-- name: or_rowid
SELECT sum(x) FROM t WHERE id = 5 OR id = {0.5};

-- name: or_ranges
SELECT sum(x) FROM t WHERE a < 20 OR a > {1-20};

-- name: or_mixed
SELECT count(*) FROM t WHERE id < 10 OR y = 5;

-- name: or_unindexed
SELECT count(*) FROM t WHERE u = 5 OR x > 1000;

-- name: or_joined
SELECT count(*) FROM t JOIN d ON d.id = t.d WHERE t.id = 3 OR t.a = 5;
