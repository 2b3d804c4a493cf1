-- order: none
SELECT * FROM Authors WHERE lastname = '{{surname:Campbell}}'
