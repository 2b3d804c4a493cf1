-- order: none
SELECT * FROM Authors WHERE nameid = {{12..28:20}}
