-- name: distinct_k
SELECT DISTINCT k FROM t;

-- name: distinct_c
SELECT DISTINCT c FROM t;

-- name: distinct_y
SELECT DISTINCT y FROM t ORDER BY y;

-- name: distinct_two
SELECT DISTINCT c, z FROM t;

-- name: distinct_range
SELECT DISTINCT c FROM t WHERE id BETWEEN {0.5} AND {0.5+300};

-- name: distinct_limit
SELECT DISTINCT k FROM t LIMIT 10;

-- name: distinct_count
SELECT count(*) FROM (SELECT DISTINCT c FROM t);

-- name: distinct_unindexed
SELECT DISTINCT u FROM t;

-- name: distinct_g
SELECT DISTINCT g FROM w;

-- name: union_two
SELECT k FROM t WHERE id < 30 UNION SELECT q FROM e WHERE id < 30;

-- name: union_all_sum
SELECT sum(v) FROM (SELECT y AS v FROM t UNION ALL SELECT q FROM e);

-- name: except_few
SELECT id FROM t WHERE id < 100 EXCEPT SELECT t FROM e WHERE t < 100;

-- name: intersect_few
SELECT id FROM t WHERE id < 100 INTERSECT SELECT t FROM e;
