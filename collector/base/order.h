#ifndef LAC_COLLECTOR_BASE_ORDER_H
#define LAC_COLLECTOR_BASE_ORDER_H

/**
 * For qsort() and bsearch(): -1, 0 or 1 as `a` comes before `b`, is equal or comes behind. Numbers of
 * one type; each is read twice. The other way round: LAC_ORDER(b, a).
 */
#define LAC_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/**
 * Binary search: moves the index `low` to the first of [low, end) for which `is_before` is false, or
 * to `end`. `is_before` is an expression over the index `at`, which the macro declares: true up to
 * some place and false from there on. It is read log2(end - low) times, `end` once.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared cannot stand in parentheses */
#define LAC_BISECT(low, end, at, is_before)                                                        \
    do {                                                                                           \
        __typeof__(low) end_ = (end);                                                              \
        while ((low) < end_) {                                                                     \
            const __typeof__(low) at = (low) + (end_ - (low)) / 2;                                 \
            if (is_before) {                                                                       \
                (low) = at + 1;                                                                    \
            } else {                                                                               \
                end_ = at;                                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
