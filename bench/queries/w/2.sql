-- order: none
SELECT * FROM Document WHERE title = 'Population'
