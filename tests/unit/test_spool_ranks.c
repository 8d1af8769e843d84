/* Which processes of a recording are which ranks: by what they told, whose children they are, and
 * their environment. */

#include "analysis/import/import.h"
#include "analysis/import/spool/spool_ranks.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FILES_MAX = 16 };

static struct lac_spool_info infos[FILES_MAX];
static size_t count;
static struct lac_spool_ranks ranks;

static struct lac_spool_info *add(int32_t pid, int32_t parent)
{
    struct lac_spool_info *const info = &infos[count++];

    ck_assert_uint_le(count, FILES_MAX);
    *info = (struct lac_spool_info){.pid = pid,
                                    .start_ticks = (uint64_t)pid * 10,
                                    .rank = -1,
                                    .world_size = -1,
                                    .told_rank = -1,
                                    .told_world_size = -1};
    if (parent > 0) {
        info->ancestors[info->ancestor_count++] =
            (struct lac_spool_ancestor){parent, (uint64_t)parent * 10};
    }
    return info;
}

static void add_told(int32_t pid, int32_t parent, int32_t rank, int32_t world_size, uint64_t group)
{
    struct lac_spool_info *const info = add(pid, parent);

    info->told_rank = rank;
    info->told_world_size = world_size;
    info->told_group = group;
}

static void add_of_environment(int32_t pid, int32_t parent, int32_t rank, int32_t world_size)
{
    struct lac_spool_info *const info = add(pid, parent);

    info->rank = rank;
    info->world_size = world_size;
}

static void find(void)
{
    struct lac_spool_info *at[FILES_MAX];

    for (size_t i = 0; i < count; i++) {
        at[i] = &infos[i];
    }
    lac_spool_ranks_done(&ranks);
    ck_assert_int_eq(lac_spool_ranks_find(at, count, &ranks), LAC_OK);
}

static void expect(size_t file, uint32_t at, int32_t rank, int32_t world_size, uint32_t group)
{
    ck_assert_uint_eq(ranks.of_file[file], at);
    ck_assert_int_eq(ranks.at[at].rank, rank);
    ck_assert_int_eq(ranks.at[at].world_size, world_size);
    ck_assert_uint_eq(ranks.at[at].group, group);
    ck_assert_int_eq(infos[file].rank, rank);
    ck_assert_int_eq(infos[file].world_size, world_size);
}

START_TEST(spawned_ranks_have_their_workers)
{
    count = 0;
    add_of_environment(10, 1, 0, 1); /* the only task of a batch job, which starts the ranks */
    add_told(20, 10, 1, 2, 7);
    add_told(21, 10, 0, 2, 7);
    add_of_environment(30, 20, 0, 1); /* workers inherit that environment */
    add(31, 21);
    /* through a fork server that has no spool */
    add(32, 25)->ancestors[1] = (struct lac_spool_ancestor){21, 210};
    infos[5].ancestor_count = 2;
    find();
    ck_assert_uint_eq(ranks.count, 2);
    ck_assert_uint_eq(ranks.of_file[0], LAC_SPOOL_NO_RANK);
    expect(1, 1, 1, 2, 0);
    expect(2, 0, 0, 2, 0);
    expect(3, 1, 1, 2, 0);
    expect(4, 0, 0, 2, 0);
    expect(5, 0, 0, 2, 0);
}
END_TEST

START_TEST(a_number_that_came_again_is_another_process)
{
    count = 0;
    add_told(20, 10, 0, 2, 7);
    add_told(21, 10, 1, 2, 7);
    add(30, 20)->ancestors[0].start_ticks++;
    add(31, 21);
    infos[3].boot_id[0] = 1; /* another host's */
    find();
    ck_assert_uint_eq(ranks.of_file[2], LAC_SPOOL_NO_RANK);
    ck_assert_uint_eq(ranks.of_file[3], LAC_SPOOL_NO_RANK);
}
END_TEST

START_TEST(of_the_environment_the_largest_world_counts)
{
    count = 0;
    add_of_environment(10, 1, 1, 2); /* a node's task */
    add_of_environment(20, 10, 4, 8);
    add_of_environment(21, 10, 5, 8);
    add_of_environment(22, 21, 5, 8);
    find();
    ck_assert_uint_eq(ranks.count, 2);
    ck_assert_uint_eq(ranks.of_file[0], LAC_SPOOL_NO_RANK);
    expect(1, 0, 4, 8, 0);
    expect(3, 1, 5, 8, 0);

    /* the ranks that a task starts told a larger one */
    count = 0;
    add_of_environment(10, 1, 0, 2);
    add_told(20, 10, 0, 4, 7);
    add_told(21, 10, 1, 4, 7);
    find();
    ck_assert_uint_eq(ranks.count, 2);
    ck_assert_uint_eq(ranks.of_file[0], LAC_SPOOL_NO_RANK);
}
END_TEST

START_TEST(a_trainer_and_its_engine_are_two_jobs)
{
    count = 0;
    for (int32_t i = 0; i < 4; i++) {
        add_of_environment(20 + i, 1, i, 4);
        infos[count - 1].told_rank = i;
        infos[count - 1].told_world_size = 4;
        infos[count - 1].told_group = 7;
    }
    add_of_environment(30, 20, 0, 4); /* the engine's, which have rank 0's environment */
    infos[4].told_rank = 0;
    infos[4].told_world_size = 2;
    infos[4].told_group = 9;
    infos[5] = infos[4];
    infos[5].pid = 31;
    infos[5].told_rank = 1;
    count = 6;
    find();
    ck_assert_uint_eq(ranks.count, 6);
    expect(0, 0, 0, 4, 0);
    expect(3, 3, 3, 4, 0);
    expect(4, 4, 0, 2, 0);
    expect(5, 5, 1, 2, 0);
}
END_TEST

START_TEST(two_jobs_of_one_size_stay_apart)
{
    count = 0;
    add_told(20, 1, 0, 2, 7);
    add_told(21, 1, 0, 2, 9);
    add_told(22, 1, 1, 2, 9);
    add_told(23, 1, 1, 2, 7);
    find();
    ck_assert_uint_eq(ranks.count, 4);
    expect(0, 0, 0, 2, 1);
    expect(3, 1, 1, 2, 1);
    expect(1, 2, 0, 2, 2);
    expect(2, 3, 1, 2, 2);
}
END_TEST

START_TEST(one_rank_alone_is_no_run)
{
    count = 0;
    add_told(20, 1, 3, 8, 7);
    add(30, 20);
    find();
    ck_assert_uint_eq(ranks.count, 0);
    ck_assert_int_eq(infos[0].rank, 3); /* which it still is called */
    ck_assert_int_eq(infos[1].rank, 3);
    count = 0;
    find();
    ck_assert_uint_eq(ranks.count, 0);
}
END_TEST

/* -- through the importer */

static uint8_t bundle[1 << 17];
static size_t used;

static void add_header(const char *name, int32_t pid, uint64_t rank, const char *text,
                       size_t text_bytes)
{
    static struct lac_spool_header header;
    const struct lac_bundle_part part = {.magic = LAC_BUNDLE_PART_MAGIC,
                                         .name_bytes = (uint32_t)strlen(name),
                                         .size_bytes = sizeof(header),
                                         .data_bytes = sizeof(header)};

    header = (struct lac_spool_header){.version = LAC_SPOOL_VERSION,
                                       .endian_mark = LAC_SPOOL_ENDIAN_MARK,
                                       .header_bytes = LAC_SPOOL_HEADER_BYTES,
                                       .segment_bytes = 65536,
                                       .clock = LAC_SPOOL_CLOCK_MONOTONIC,
                                       .pid = pid,
                                       .start_ticks = (uint64_t)pid * 10,
                                       .first = {1000, 1000, 2000},
                                       .rank = rank,
                                       .rank_group = 7,
                                       .text_bytes = (uint32_t)text_bytes};
    memcpy(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic));
    memcpy(header.text, text, text_bytes);
    ck_assert_uint_lt(used + sizeof(part) + strlen(name) + sizeof(header), sizeof(bundle));
    memcpy(bundle + used, &part, sizeof(part));
    memcpy(bundle + used + sizeof(part), name, strlen(name));
    memcpy(bundle + used + sizeof(part) + strlen(name), &header, sizeof(header));
    used += sizeof(part) + strlen(name) + sizeof(header);
}

static char told[1024];

static enum lac_status look(void *context, struct lac_model *model, struct lac_error *reterr)
{
    const size_t length = strlen(told);

    (void)context;
    (void)reterr;
    (void)snprintf(told + length, sizeof(told) - length,
                   "%s (%d of %d):", lac_model_str(model, model->info.name), (int)model->info.rank,
                   (int)model->info.world_size);
    for (uint32_t i = 0; i < model->process_count; i++) {
        const size_t end = strlen(told);

        (void)snprintf(told + end, sizeof(told) - end, " %d=%s", (int)model->processes[i].pid,
                       lac_model_str(model, model->processes[i].name));
    }
    (void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "\n");
    lac_model_destroy(model);
    return LAC_OK;
}

static const char *imported(void)
{
    const struct lac_import_options options = {.name = "job"};
    struct lac_error error = {0};

    told[0] = '\0';
    ck_assert_int_eq(lac_import_bytes(bundle, used, &options, look, NULL, &error), LAC_OK);
    return told;
}

START_TEST(a_recording_of_ranks_that_told_it_is_a_trace_each)
{
    static const char of_worker[] = "comm=python3\0ancestors=25:250,21:210,10:100";
    static const char of_rank[] = "comm=python3";
    const uint64_t two = (uint64_t)2 << 32;

    memcpy(bundle, LAC_BUNDLE_MAGIC, 8);
    used = 8;
    add_header("20.spool", 20, two | 0, of_rank, sizeof(of_rank));
    add_header("21.spool", 21, two | 1, of_rank, sizeof(of_rank));
    add_header("30.spool", 30, 0, of_worker, sizeof(of_worker));
    ck_assert_str_eq(imported(), "job rank 0 (0 of 2): 20=python3 rank 0\n"
                                 "job rank 1 (1 of 2): 21=python3 rank 1 30=python3\n");
}
END_TEST

START_TEST(what_makes_no_sense_is_no_rank)
{
    static const char text[] =
        "comm=python3\0ancestors=,20:,:200,99999999999:1,20:200:1\0env.RANK=-1\0env.WORLD_SIZE=2";

    memcpy(bundle, LAC_BUNDLE_MAGIC, 8);
    used = 8;
    add_header("20.spool", 20, (uint64_t)2 << 32 | 2, text, sizeof(text)); /* 2 of 2 */
    add_header("21.spool", 21, UINT64_MAX, text, sizeof(text));
    add_header("22.spool", 22, (uint64_t)1 << 32, text, sizeof(text)); /* the only one */
    ck_assert_str_eq(imported(), "job (-1 of -1): 20=python3 21=python3 22=python3\n");
}
END_TEST

START_TEST(launchers_name_ranks_each_in_their_way)
{
    static const struct {
        const char *text;
        size_t size;
        const char *expected;
    } cases[] = {
#define CASE(t, e) {t, sizeof(t), e}
        CASE("comm=a\0env.PMI_RANK=1\0env.PMI_SIZE=4\0env.SLURM_PROCID=0\0env.SLURM_NTASKS=1",
             "job (1 of 4): 20=a\n"),
        CASE("comm=a\0env.OMPI_COMM_WORLD_RANK=2\0env.OMPI_COMM_WORLD_SIZE=4\0"
             "env.SLURM_PROCID=0\0env.SLURM_NTASKS=2",
             "job (2 of 4): 20=a\n"),
        CASE("comm=a\0env.RANK=5\0env.WORLD_SIZE=8\0env.SLURM_PROCID=1\0env.SLURM_NTASKS=2",
             "job (5 of 8): 20=a\n"),
        CASE("comm=a\0env.SLURM_PROCID=1\0env.SLURM_NTASKS=2", "job (1 of 2): 20=a\n"),
        CASE("comm=a\0env.MV2_COMM_WORLD_RANK=1\0env.MV2_COMM_WORLD_SIZE=2",
             "job (1 of 2): 20=a\n"),
        CASE("comm=a\0env.HOROVOD_RANK=1\0env.HOROVOD_SIZE=2", "job (1 of 2): 20=a\n"),
#undef CASE
    };

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        memcpy(bundle, LAC_BUNDLE_MAGIC, 8);
        used = 8;
        add_header("20.spool", 20, 0, cases[i].text, cases[i].size);
        ck_assert_str_eq(imported(), cases[i].expected);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("spool_ranks");
    TCase *const tcase = tcase_create("ranks");

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, spawned_ranks_have_their_workers);
    tcase_add_test(tcase, a_number_that_came_again_is_another_process);
    tcase_add_test(tcase, of_the_environment_the_largest_world_counts);
    tcase_add_test(tcase, a_trainer_and_its_engine_are_two_jobs);
    tcase_add_test(tcase, two_jobs_of_one_size_stay_apart);
    tcase_add_test(tcase, one_rank_alone_is_no_run);
    tcase_add_test(tcase, a_recording_of_ranks_that_told_it_is_a_trace_each);
    tcase_add_test(tcase, what_makes_no_sense_is_no_rank);
    tcase_add_test(tcase, launchers_name_ranks_each_in_their_way);
    return check_main(suite);
}
