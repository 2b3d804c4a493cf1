-- order: none
SELECT * FROM Authors WHERE lastname = 'Campbell'
