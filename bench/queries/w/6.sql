-- order: none
SELECT d.title FROM Publication pu, Document d WHERE pu.title = d.title AND d.title = '{{title_of_both:Campbell}}'
