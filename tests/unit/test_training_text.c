/* The training that benches import is the one that is kept as a model: on the way through the file no slice
 * is lost and none is moved. */

#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/training_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLICES = 30000 };

/** The track of one model in the other: of that kind, thread or stream id, and process. */
static uint32_t same_track(const struct lac_model *from, uint32_t track, const struct lac_model *to)
{
    const struct lac_track *given = &from->tracks[track];
    for (uint32_t t = 0; t < to->track_count; t++) {
        const struct lac_track *at = &to->tracks[t];
        bool is_same_process =
            given->kind == LAC_TRACK_STREAM
                ? at->device == given->device
                : at->process != LAC_NONE &&
                      to->processes[at->process].pid == from->processes[given->process].pid;
        if (at->kind == given->kind && at->tid == given->tid && is_same_process) {
            return t;
        }
    }
    return LAC_NONE;
}

START_TEST(the_file_holds_what_the_model_holds)
{
    char path[] = "/tmp/lacuna-training-XXXXXX";
    struct lac_model *model = NULL;
    uint64_t count = 0;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(training_model_create(SLICES, &model), LAC_OK);
    ck_assert_int_eq(training_text_write(path, 4, SLICES, &count), LAC_OK);
    struct imported imported = import_path(path);
    ck_assert_int_eq(imported.status, LAC_OK);
    ck_assert_int_eq(unlink(path), 0);
    const struct lac_model *read = imported.models[0];
    ck_assert_uint_eq(count, model->slices.count);
    ck_assert_uint_eq(read->info.slice_count, count);
    ck_assert_uint_eq(read->info.dropped_count, 0);
    ck_assert_uint_eq(read->info.repaired_count, 0);
    for (uint32_t t = 0; t < model->track_count; t++) {
        uint32_t other = same_track(model, t, read);
        ck_assert_uint_ne(other, LAC_NONE);
        ck_assert_uint_eq(read->tracks[other].count, model->tracks[t].count);
        for (uint64_t i = 0; i < model->tracks[t].count; i++) {
            uint64_t a = model->tracks[t].first + i;
            uint64_t b = read->tracks[other].first + i;
            ck_assert_int_eq(model->slices.start_ns[a], read->slices.start_ns[b]);
            ck_assert_int_eq(model->slices.dur_ns[a], read->slices.dur_ns[b]);
            if (model->slices.kind[a] == LAC_SLICE_KERNEL || /* an import tells ranges apart */
                model->slices.kind[a] == LAC_SLICE_COPY || model->slices.kind[a] == LAC_SLICE_API) {
                ck_assert_uint_eq(model->slices.kind[a], read->slices.kind[b]);
            }
            ck_assert_str_eq(lac_strings_get(&model->strings, model->slices.name[a]),
                             lac_strings_get(&read->strings, read->slices.name[b]));
        }
    }
    imported_done(&imported);
    lac_model_destroy(model);
}
END_TEST

START_TEST(more_ranks_have_more_devices)
{
    char path[] = "/tmp/lacuna-training-XXXXXX";
    uint64_t count = 0;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(training_text_write(path, 16, SLICES, &count), LAC_OK);
    struct imported imported = import_path(path);
    ck_assert_int_eq(imported.status, LAC_OK);
    ck_assert_uint_eq(imported.models[0]->info.slice_count, count);
    ck_assert_uint_eq(imported.models[0]->device_count, 16);
    ck_assert_int_eq(unlink(path), 0);
    imported_done(&imported);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("training_text");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_file_holds_what_the_model_holds);
    tcase_add_test(all, more_ranks_have_more_devices);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
