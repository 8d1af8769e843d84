/* Which GPUs a launcher samples: by CUDA_VISIBLE_DEVICES in all its forms, by the local rank, all. */
#include "collector/base/count_of.h"
#include "collector/sample/gpu_choice.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_0 "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
#define UUID_1 "GPU-8932f9aa-0000-4106-c12f-20bd9faed9f6"
#define UUID_2 "GPU-1f2e3d4c-0000-4106-c12f-20bd9faed9f6"
#define MIG_2  "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"

static struct lac_gpu_seen seen[] = {{"H100", UUID_0}, {"H100", UUID_1}, {"H100", UUID_2}};

static bool whole_of(void *context, const char *mig, char uuid[LAC_GPU_CHOICE_TEXT])
{
    ck_assert_ptr_eq(context, seen);
    (void)snprintf(uuid, LAC_GPU_CHOICE_TEXT, "%s", strcmp(mig, MIG_2) == 0 ? UUID_2 : "");
    return uuid[0] != '\0';
}

/* "02": GPUs 0 and 2. */
static const char *choose(bool is_first, const char **ret_by)
{
    static char chosen[LAC_GPU_CHOICE_MAX + 1];
    const struct lac_gpu_situation situation = {.variable = getenv,
                                                .is_first = is_first,
                                                .seen = seen,
                                                .count = LAC_COUNT_OF(seen),
                                                .whole_of = whole_of,
                                                .context = seen};
    bool wanted[LAC_GPU_CHOICE_MAX];
    size_t length = 0;

    *ret_by = lac_gpu_choose(&situation, wanted);
    for (size_t i = 0; i < LAC_COUNT_OF(seen); i++) {
        if (wanted[i]) {
            chosen[length++] = (char)('0' + i);
        }
    }
    chosen[length] = '\0';
    return chosen;
}

static void begin(void)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES",
                                        "CUDA_DEVICE_ORDER",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_LOCAL_RANK",
                                        "MV2_COMM_WORLD_LOCAL_SIZE",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_TASKS_PER_NODE"};

    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        (void)unsetenv(names[i]);
    }
    (void)snprintf(seen[2].name, sizeof(seen[2].name), "H100");
}

static const struct {
    const char *list;
    const char *others; /* what a launcher beside the first samples */
    const char *first;
} lists[] = {
    {"1", "1", "1"},
    {"0,2", "02", "02"},
    {"2,0", "02", "02"},
    {" 2 , 1", "12", "12"},
    {"1,1", "1", "1"},
    {UUID_1, "1", "1"},
    {"gpu-8932f9aa", "", "012"}, /* it has to begin as UUIDs do */
    {"GPU-8932F9AA", "1", "1"},
    {"GPU-1f", "2", "2"},
    {"GPU-8932f9", "", "012"}, /* of two */
    {"GPU-1f,0", "02", "02"},
    {"MIG-" UUID_1 "/3/0", "1", "1"},
    {"MIG-" UUID_1 "/3/0,MIG-" UUID_1 "/4/0", "1", "1"},
    {MIG_2, "2", "2"},
    {"MIG-5c89852c-0000-c3f3-1b07-005d5ae1dc3f", "", "012"},
    {"0,-1,2", "0", "0"}, /* what follows an entry that is none does not count */
    {"0,7,2", "0", "0"},
    {"0,1x,2", "0", "0"},
    {"0,,2", "0", "0"},
    {"99999999999999999999", "", "012"},
    {"", "", "012"}, /* another process of the job may see more */
    {"-1", "", "012"},
    {"NoDevFiles", "", "012"},
};

START_TEST(the_devices_that_cuda_shows)
{
    const char *by;

    (void)setenv("CUDA_VISIBLE_DEVICES", lists[_i].list, 1);
    (void)setenv("LOCAL_RANK", "1", 1); /* it counts what is visible */
    ck_assert_str_eq(choose(false, &by), lists[_i].others);
    ck_assert_str_eq(by, "CUDA_VISIBLE_DEVICES");
    ck_assert_str_eq(choose(true, &by), lists[_i].first);
    ck_assert_str_eq(by, strcmp(lists[_i].others, "") == 0 ? "all" : "CUDA_VISIBLE_DEVICES");
}
END_TEST

START_TEST(a_list_without_end_is_none)
{
    char list[4096];
    const char *by;

    memset(list, '1', sizeof(list) - 1);
    list[sizeof(list) - 1] = '\0';
    (void)setenv("CUDA_VISIBLE_DEVICES", list, 1);
    ck_assert_str_eq(choose(false, &by), "");
    memset(list, ',', sizeof(list) - 1);
    (void)setenv("CUDA_VISIBLE_DEVICES", list, 1);
    ck_assert_str_eq(choose(false, &by), "");
}
END_TEST

static const struct {
    const char *rank;
    const char *value;
    const char *tasks;
    const char *count; /* NULL: not told */
    const char *chosen;
} ranks[] = {
    {"LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "3", "1"},
    {"LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", NULL, "1"},
    {"LOCAL_RANK", "5", "LOCAL_WORLD_SIZE", "6", "2"}, /* two share one */
    {"LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "1", "012"},
    {"LOCAL_RANK", "one", "LOCAL_WORLD_SIZE", "3", "012"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "3", "2"},
    {"MPI_LOCALRANKID", "2", "MPI_LOCALNRANKS", "3", "2"},
    {"MV2_COMM_WORLD_LOCAL_RANK", "2", "MV2_COMM_WORLD_LOCAL_SIZE", "3", "2"},
    {"SLURM_LOCALID", "2", "SLURM_STEP_TASKS_PER_NODE", "3(x2),1", "2"},
    {"SLURM_LOCALID", "2", "SLURM_STEP_TASKS_PER_NODE", "16", "2"},
    {"SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "1(x2)", "012"},
    {"SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", NULL, "012"}, /* the batch script */
};

START_TEST(the_device_of_the_local_rank)
{
    const char *by;

    (void)setenv(ranks[_i].rank, ranks[_i].value, 1);
    if (ranks[_i].count != NULL) {
        (void)setenv(ranks[_i].tasks, ranks[_i].count, 1);
    }
    ck_assert_str_eq(choose(false, &by), ranks[_i].chosen);
    ck_assert_str_eq(by, strlen(ranks[_i].chosen) == 1 ? ranks[_i].rank : "all");
    ck_assert_str_eq(choose(true, &by), "012"); /* the first launcher samples the host */
}
END_TEST

START_TEST(the_rank_of_what_started_it_last)
{
    const char *by;

    ck_assert_str_eq(choose(false, &by), "012");
    (void)setenv("SLURM_LOCALID", "0", 1); /* of the daemon that mpirun started */
    (void)setenv("SLURM_STEP_TASKS_PER_NODE", "2", 1);
    (void)setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    ck_assert_str_eq(choose(false, &by), "1");
    ck_assert_str_eq(by, "OMPI_COMM_WORLD_LOCAL_RANK");
}
END_TEST

START_TEST(indices_of_unlike_gpus_are_known_in_the_order_of_the_bus_only)
{
    const char *by;

    (void)snprintf(seen[2].name, sizeof(seen[2].name), "L4");
    (void)setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    ck_assert_str_eq(choose(false, &by), "012");
    (void)setenv("CUDA_VISIBLE_DEVICES", UUID_1, 1);
    ck_assert_str_eq(choose(false, &by), "1");
    (void)setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    (void)setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
    ck_assert_str_eq(choose(false, &by), "012");
    (void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    ck_assert_str_eq(choose(false, &by), "1");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)setenv("LOCAL_RANK", "1", 1);
    ck_assert_str_eq(choose(false, &by), "1");
    (void)unsetenv("CUDA_DEVICE_ORDER");
    ck_assert_str_eq(choose(false, &by), "012");
}
END_TEST

START_TEST(a_host_without_a_gpu)
{
    const struct lac_gpu_situation situation = {.variable = getenv};
    bool wanted[LAC_GPU_CHOICE_MAX];

    ck_assert_str_eq(lac_gpu_choose(&situation, wanted), "all");
    (void)setenv("LOCAL_RANK", "1", 1);
    ck_assert_str_eq(lac_gpu_choose(&situation, wanted), "all");
    (void)setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    ck_assert_str_eq(lac_gpu_choose(&situation, wanted), "CUDA_VISIBLE_DEVICES");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("gpu choice");
    TCase *const tests = tcase_create("devices of a launcher");

    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_loop_test(tests, the_devices_that_cuda_shows, 0, LAC_COUNT_OF(lists));
    tcase_add_test(tests, a_list_without_end_is_none);
    tcase_add_loop_test(tests, the_device_of_the_local_rank, 0, LAC_COUNT_OF(ranks));
    tcase_add_test(tests, the_rank_of_what_started_it_last);
    tcase_add_test(tests, indices_of_unlike_gpus_are_known_in_the_order_of_the_bus_only);
    tcase_add_test(tests, a_host_without_a_gpu);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
