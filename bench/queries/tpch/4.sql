-- order: all
SELECT o_orderpriority, count(*) AS order_count
FROM orders
WHERE o_orderdate >= '{{1993-01..1997-10:1993-07}}-01'
  AND o_orderdate < '{{1993-01..1997-10+3:1993-10}}-01'
  AND EXISTS (
    SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority
