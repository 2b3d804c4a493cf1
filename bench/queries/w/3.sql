-- order: none
SELECT id FROM Authors
WHERE fullname = '{{seldom_name#1:Edna}} {{initial:F}}. {{surname:Campbell}}'
  OR firstname = '{{seldom_name#2:Jim}}'
