-- name: count_all
SELECT count(*) FROM t;

-- name: sum_x
SELECT sum(x) FROM t;

-- name: sum_three
SELECT sum(x), avg(y), max(ts) FROM t;

-- name: sum_where
SELECT sum(x) FROM t WHERE y > 500;

-- name: sum_expr
SELECT sum(x * y + 1) FROM t WHERE x > y;

-- name: min_rowid
SELECT min(id) FROM t;

-- name: max_rowid
SELECT max(id) FROM t;

-- name: max_ts
SELECT max(ts) FROM t;

-- name: min_a
SELECT min(a) FROM t;

-- name: min_max
SELECT min(ts), max(ts) FROM t;

-- name: max_text
SELECT max(s) FROM t;

-- name: max_u
SELECT max(u) FROM t;

-- name: max_k
SELECT max(ts) FROM t WHERE k = 3;

-- name: count_column
SELECT count(u) FROM t;

-- name: count_distinct
SELECT count(DISTINCT k) FROM t;

-- name: count_distinct_text
SELECT count(DISTINCT c) FROM t;

-- name: group_c
SELECT c, count(*) FROM t GROUP BY c;

-- name: group_c_sum
SELECT c, sum(x), avg(y) FROM t GROUP BY c;

-- name: group_k
SELECT k, count(*) FROM t GROUP BY k;

-- name: group_k_sum
SELECT k, sum(x) FROM t GROUP BY k;

-- name: group_y
SELECT y, count(*), min(x) FROM t GROUP BY y;

-- name: group_expr
SELECT y / 100, sum(x) FROM t GROUP BY y / 100;

-- name: group_range
SELECT y, sum(x) FROM t WHERE id BETWEEN {0.5} AND {0.5+500} GROUP BY y;

-- name: group_having
SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > 120;

-- name: group_top
SELECT k, sum(x) FROM t GROUP BY k ORDER BY 2 DESC, 1 LIMIT 5;

-- name: group_first
SELECT k, count(*) FROM t GROUP BY k ORDER BY k LIMIT 5;

-- name: group_w
SELECT g, sum(v) FROM w GROUP BY g;

-- name: group_rowid
SELECT id, count(*) FROM t WHERE id < 40 GROUP BY id;

-- name: total_e
SELECT total(p), count(*) FROM e WHERE q = 7;

-- name: group_concat_k
SELECT group_concat(id) FROM t WHERE k = 1;

-- name: filter_sum
SELECT sum(x) FILTER (WHERE y < 10), count(*) FROM t;

-- name: length_sum
SELECT sum(length(note)) FROM t;

-- name: count_w
SELECT count(*) FROM w;

-- name: max_w
SELECT max(g) FROM w;
