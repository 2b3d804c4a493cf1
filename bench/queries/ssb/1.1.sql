-- order: all
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, date
WHERE lo_orderdate = d_datekey
  AND d_year = {{1992..1997:1993}}
  AND lo_discount BETWEEN {{1..8:1}} AND {{1..8+2:3}}
  AND lo_quantity < {{24..26:25}}
