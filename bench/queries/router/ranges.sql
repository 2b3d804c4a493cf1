-- name: range_rowid_1001
SELECT sum(x) FROM t WHERE id BETWEEN {0.5} AND {0.5+1000};

-- name: range_rowid_10
SELECT sum(x) FROM t WHERE id > {0.5} AND id <= {0.5+10};

-- name: range_rowid_1pc
SELECT sum(x) FROM t WHERE id BETWEEN {0.5} AND {0.51};

-- name: range_rowid_10pc
SELECT sum(x) FROM t WHERE id BETWEEN {0.5} AND {0.6};

-- name: range_rowid_half
SELECT sum(x) FROM t WHERE id > {0.5};

-- name: range_rowid_low
SELECT sum(x), max(ts) FROM t WHERE id < 100;

-- name: range_rowid_high
SELECT sum(x), max(ts) FROM t WHERE id > {1-100};

-- name: range_rowid_none
SELECT sum(x) FROM t WHERE id > {2};

-- name: range_rowid_all
SELECT sum(x) FROM t WHERE id > 0;

-- name: range_rowid_rows
SELECT id, s, x FROM t WHERE id BETWEEN {0.5} AND {0.5+1000};

-- name: range_rowid_param
-- bind: {0.5} {0.5+1000}
SELECT sum(x) FROM t WHERE id BETWEEN ? AND ?;

-- name: range_rowid_param_half
-- bind: {0.2} {0.7}
SELECT sum(x) FROM t WHERE id BETWEEN ? AND ?;

-- name: range_a_100
SELECT sum(x) FROM t WHERE a >= {0.5} AND a < {0.5+100};

-- name: range_a_1pc
SELECT sum(x) FROM t WHERE a BETWEEN {0.5} AND {0.51};

-- name: range_a_10pc
SELECT sum(x) FROM t WHERE a BETWEEN {0.5} AND {0.6};

-- name: range_a_half
SELECT sum(x) FROM t WHERE a > {0.5};

-- name: range_a_covering
SELECT count(*) FROM t WHERE a BETWEEN {0.5} AND {0.55};

-- name: range_a_param
-- bind: {0.5} {0.5+200}
SELECT sum(x) FROM t WHERE a BETWEEN ? AND ?;

-- name: range_ts
SELECT sum(x), avg(y) FROM t WHERE ts BETWEEN 1600001000 AND 1600003000;

-- name: range_ts_open
SELECT count(*), sum(y) FROM t WHERE ts > 1600000000 + {9.99};

-- name: range_ts_real
SELECT count(*) FROM t WHERE ts < 1600000500.5;

-- name: range_k_ts
SELECT sum(x) FROM t WHERE k = 3 AND ts > 1600000000 + {5};

-- name: range_k_ts_param
-- bind: 2 1600009000
SELECT count(*) FROM t WHERE k = ? AND ts < ?;

-- name: range_x_desc
SELECT count(*), max(y) FROM t WHERE x BETWEEN 3 AND 3.5;

-- name: range_x_desc_half
SELECT sum(y) FROM t WHERE x < 512;

-- name: range_s
SELECT count(*), sum(x) FROM t WHERE s BETWEEN 'name00000010' AND 'name00000020';

-- name: range_s_high
SELECT sum(x) FROM t WHERE s > 'name0';

-- name: range_y_and
SELECT count(*) FROM t WHERE y BETWEEN 10 AND 12 AND x > 100;

-- name: range_w
SELECT sum(v), count(*) FROM w WHERE g BETWEEN 3 AND 6;

-- name: range_w_part
SELECT sum(v) FROM w WHERE g = 4 AND h > 50;

-- name: range_two_tables
SELECT count(*) FROM t JOIN d ON d.id = t.d WHERE t.id < 50;

-- name: range_expr
SELECT sum(x) FROM t WHERE id < abs(-50) + 10;
