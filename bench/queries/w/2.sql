-- order: none
SELECT * FROM Document WHERE title = '{{frequent_title:Population}}'
