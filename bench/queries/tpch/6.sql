-- order: all
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= '{{1993..1997:1994}}-01-01'
  AND l_shipdate < '{{1993..1997+1:1995}}-01-01'
  AND l_discount BETWEEN {{0.01..0.08:0.05}} AND {{0.01..0.08+0.02:0.07}}
  AND l_quantity < {{24..25:24}}
