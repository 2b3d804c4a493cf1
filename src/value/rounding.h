/*
** How the running SQLite rounds the numbers of texts. Versions differ (text_number.h). It is found
** by experiment, once per process.
*/
#ifndef WL_ROUNDING_H
#define WL_ROUNDING_H

int wl_rounding_get(void); /* WL_ROUND_… */

#endif
