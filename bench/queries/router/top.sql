-- name: top_rowid
SELECT * FROM t ORDER BY id LIMIT 10;

-- name: top_rowid_desc
SELECT * FROM t ORDER BY id DESC LIMIT 10;

-- name: top_ts_desc_id
SELECT id, ts, x FROM t ORDER BY ts DESC, id LIMIT 10;

-- name: top_ts
SELECT id, ts, x FROM t ORDER BY ts LIMIT 10;

-- name: top_a_desc
SELECT id, a FROM t ORDER BY a DESC LIMIT 5;

-- name: top_text
SELECT s FROM t ORDER BY s LIMIT 20;

-- name: top_text_desc
SELECT id, s FROM t ORDER BY s DESC LIMIT 20;

-- name: top_offset
SELECT id, ts FROM t ORDER BY ts LIMIT 10 OFFSET 500;

-- name: top_where
SELECT id, ts FROM t WHERE y < 500 ORDER BY ts DESC LIMIT 10;

-- name: top_where_rare
SELECT id, ts FROM t WHERE z = 1 ORDER BY ts DESC LIMIT 10;

-- name: top_group_key
SELECT id, ts FROM t WHERE k = 3 ORDER BY ts DESC LIMIT 5;

-- name: top_expr
SELECT id, x * y FROM t ORDER BY x * y DESC, id LIMIT 10;

-- name: top_unindexed
SELECT id, u FROM t ORDER BY u DESC, id LIMIT 10;

-- name: top_partial_order
SELECT id, k, x FROM t ORDER BY k, x, id LIMIT 10;

-- name: top_limit_only
SELECT * FROM t LIMIT 10;

-- name: top_limit_where
SELECT id FROM t WHERE y = 123 LIMIT 10;

-- name: top_param
-- bind: 10
SELECT id, ts FROM t ORDER BY ts DESC LIMIT ?;

-- name: top_1000
SELECT id, a FROM t ORDER BY a LIMIT 1000;

-- name: top_join
SELECT t.id, d.name FROM t JOIN d ON d.id = t.d ORDER BY t.ts DESC LIMIT 10;

-- name: top_w
SELECT * FROM w ORDER BY g, h LIMIT 10;

-- name: top_w_desc
SELECT * FROM w ORDER BY g DESC, h DESC LIMIT 10;

-- name: sub_avg_last
SELECT avg(x) FROM (SELECT x FROM t ORDER BY id DESC LIMIT 1000);

-- name: sub_sum_top
SELECT sum(y) FROM (SELECT y FROM t ORDER BY ts LIMIT 100);

-- name: sub_count_limit
SELECT count(*) FROM (SELECT 1 FROM t LIMIT 1000);

-- name: sub_top_group
SELECT c, count(*) FROM (SELECT c FROM t ORDER BY id DESC LIMIT 500) GROUP BY c;

-- name: sub_top_join
SELECT count(*) FROM (SELECT d FROM t ORDER BY ts DESC LIMIT 50) q JOIN d ON d.id = q.d;
