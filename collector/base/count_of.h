#ifndef LAC_COLLECTOR_BASE_COUNT_OF_H
#define LAC_COLLECTOR_BASE_COUNT_OF_H

/** Elements of an array, which must be one: of a pointer it does not compile. */
#define LAC_COUNT_OF(array)                                                                        \
    (sizeof(array) / sizeof((array)[0]) +                                                          \
     0 * sizeof(struct {                                                                           \
         _Static_assert(!__builtin_types_compatible_p(__typeof__(array), __typeof__(&(array)[0])), \
                        "a pointer has no count");                                                 \
         int unused;                                                                               \
     }))

#endif
