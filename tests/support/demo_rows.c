#include "tests/support/demo_rows.h"

#include "tests/support/check_marks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int by_thread(const void *a, const void *b)
{
    const struct lac_demo_event *left = a;
    const struct lac_demo_event *right = b;
    if (left->thread != right->thread) {
        return left->thread < right->thread ? -1 : 1;
    }
    if (left->start_ns != right->start_ns) {
        return left->start_ns < right->start_ns ? -1 : 1;
    }
    return left->dur_ns > right->dur_ns ? -1 : left->dur_ns < right->dur_ns;
}

void check_demo_rows(const struct lac_demo_event *events, uint64_t count)
{
    struct lac_demo_event *sorted = malloc((count + 1) * sizeof(*sorted));
    ck_assert_ptr_nonnull(sorted);
    memcpy(sorted, events, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_thread);
    int64_t open_end_ns[32];
    int depth = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct lac_demo_event *e = &sorted[i];
        ck_assert_int_ge(e->dur_ns, 0);
        depth = i == 0 || sorted[i - 1].thread != e->thread ? 0 : depth;
        while (depth > 0 && open_end_ns[depth - 1] <= e->start_ns) {
            depth--;
        }
        bool is_stream = e->thread == LAC_DEMO_COMPUTE_STREAM ||
                         e->thread == LAC_DEMO_COPY_STREAM || e->thread == LAC_DEMO_COMM_STREAM;
        ck_assert_msg(!is_stream || depth == 0, "%s overlaps its stream", e->name);
        ck_assert_msg(depth == 0 || e->start_ns + e->dur_ns <= open_end_ns[depth - 1], "%s crosses",
                      e->name);
        ck_assert_int_lt(depth, 32);
        open_end_ns[depth++] = e->start_ns + e->dur_ns;
    }
    free(sorted);
}
