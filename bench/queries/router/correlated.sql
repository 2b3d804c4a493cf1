-- name: lookup_few
SELECT id, (SELECT sum(q) FROM e WHERE e.t = t.id) FROM t WHERE id < 50;

-- name: lookup_one
SELECT id, (SELECT name FROM d WHERE d.id = t.d) FROM t WHERE id = {0.5};

-- name: lookup_all
SELECT sum((SELECT kind FROM d WHERE d.id = t.d)) FROM t;

-- name: lookup_limit
SELECT id, (SELECT name FROM d WHERE d.id = t.d) FROM t ORDER BY id LIMIT 20;

-- name: lookup_k
SELECT id, (SELECT count(*) FROM e WHERE e.t = t.id) FROM t WHERE k = 2;

-- name: lookup_max
SELECT name, (SELECT max(ts) FROM t WHERE t.d = d.id) FROM d WHERE id < 10;

-- name: lookup_last
SELECT name, (SELECT x FROM t WHERE t.d = d.id ORDER BY t.id DESC LIMIT 1) FROM d WHERE id < 10;

-- name: scalar_max
SELECT sum(x) FROM t WHERE id > (SELECT max(id) - 100 FROM t);

-- name: scalar_avg
SELECT count(*) FROM t WHERE x > (SELECT avg(x) FROM t);

-- name: scalar_point
SELECT count(*) FROM t WHERE d = (SELECT id FROM d WHERE name = 'dim00004');

-- name: in_select_few
SELECT count(*), sum(x) FROM t WHERE id IN (SELECT t FROM e WHERE id < 20);

-- name: in_select_kind
SELECT count(*) FROM t WHERE d IN (SELECT id FROM d WHERE kind = 4);

-- name: in_select_all
SELECT count(*) FROM t WHERE id IN (SELECT t FROM e);

-- name: not_in_select
SELECT count(*) FROM d WHERE id NOT IN (SELECT d FROM t);

-- name: in_select_point
SELECT s FROM t WHERE id IN (SELECT t FROM e WHERE id = 3);

-- name: in_select_limit
SELECT sum(x) FROM t WHERE id IN (SELECT t FROM e ORDER BY id DESC LIMIT 10);
