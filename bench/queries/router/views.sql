-- name: view_recent
SELECT * FROM recent;

-- name: view_recent_sum
SELECT sum(x) FROM recent;

-- name: view_plain_point
SELECT x FROM plain WHERE id = {0.5};

-- name: view_plain_range
SELECT sum(x) FROM plain WHERE a BETWEEN {0.5} AND {0.5+100};

-- name: view_plain_all
SELECT sum(x) FROM plain;

-- name: view_joined_point
SELECT * FROM joined WHERE id = {0.5};

-- name: view_joined_kind
SELECT sum(x) FROM joined WHERE kind = 3;

-- name: view_joined_all
SELECT kind, sum(x) FROM joined GROUP BY kind;

-- name: view_both_point
SELECT * FROM both WHERE id = {0.25};

-- name: view_both_all
SELECT sum(v) FROM both;

-- name: cte_top
WITH q AS (SELECT id, x FROM t ORDER BY ts DESC LIMIT 100) SELECT avg(x) FROM q;

-- name: cte_two_uses
WITH q AS (SELECT k, sum(x) AS s FROM t WHERE id < 500 GROUP BY k) SELECT max(s), min(s) FROM q;

-- name: cte_point
WITH q AS (SELECT * FROM t) SELECT x FROM q WHERE id = {0.5};

-- name: cte_join
WITH q AS (SELECT id FROM d WHERE kind = 2) SELECT count(*) FROM t WHERE d IN q;

-- name: cte_group
WITH q AS (SELECT d, sum(x) AS s FROM t GROUP BY d) SELECT count(*) FROM q WHERE s > 1000;

-- name: cte_recursive
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 100) SELECT sum(x) FROM t JOIN r ON t.id = r.i;

-- name: derived_group
SELECT max(n) FROM (SELECT c, count(*) AS n FROM t GROUP BY c);

-- name: derived_range
SELECT avg(s) FROM (SELECT sum(x) AS s FROM t WHERE id BETWEEN {0.5} AND {0.5+500} GROUP BY y);

-- name: select_all
SELECT id, x FROM t;

-- name: select_where
SELECT id, x FROM t WHERE y < 20;

-- name: select_sorted
SELECT id, x FROM t WHERE y < 20 ORDER BY x, id;

-- name: select_constant
SELECT 1 + 1;

-- name: window_few
SELECT id, sum(x) OVER (ORDER BY id) FROM t WHERE id < 50;
