-- order: all
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey
  AND p_brand = 'Brand#{{1..5#1:2}}{{1..5#2:3}}'
  AND p_container = '{{container:MED}} {{wrap:BOX}}'
  AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)
