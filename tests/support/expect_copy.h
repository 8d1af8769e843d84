#ifndef LAC_TESTS_SUPPORT_EXPECT_COPY_H
#define LAC_TESTS_SUPPORT_EXPECT_COPY_H

#include "analysis/model/model.h"

#include <check.h>

/** Fail unless bytes, direction and memory of the copy are those. */
static inline void expect_copy(const struct lac_copy *copy, const struct lac_copy *expected)
{
    ck_assert_int_eq(copy->bytes, expected->bytes);
    ck_assert_int_eq(copy->copy_kind, expected->copy_kind);
    ck_assert_int_eq(copy->src, expected->src);
    ck_assert_int_eq(copy->dst, expected->dst);
}

#endif
