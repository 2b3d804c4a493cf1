-- order: none
SELECT id FROM Document WHERE title = '{{frequent_title:Population}}' OR pagerange = '{{pages:pp. xxxviii-xxxix}}'
