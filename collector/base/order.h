#ifndef LAC_COLLECTOR_BASE_ORDER_H
#define LAC_COLLECTOR_BASE_ORDER_H

/**
 * For qsort() and bsearch(): -1, 0 or 1 as `a` comes before `b`, is equal or comes behind. Numbers of
 * one type; each is read twice. The other way round: LAC_ORDER(b, a).
 */
#define LAC_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif
