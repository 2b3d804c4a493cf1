-- order: all
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, date
WHERE lo_orderdate = d_datekey
  AND d_weeknuminyear = {{1..52:6}}
  AND d_year = {{1992..1997:1994}}
  AND lo_discount BETWEEN {{1..8:5}} AND {{1..8+2:7}}
  AND lo_quantity BETWEEN {{1..41:26}} AND {{1..41+9:35}}
