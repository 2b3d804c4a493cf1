-- order: none
SELECT * FROM Authors WHERE nameid = 20
