/*
 * A process that is killed while its GPU is recorded: while it works, while recording pauses or
 * goes on, while CUPTI goes to another profiler or comes back, while the process ends. What is left
 * are whole records, and all but what CUPTI had. Against a stand-in (tests/stand_in).
 */
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "collector/base/monotonic.h"
#include "collector/inject/api.h"
#include "collector/inject/cupti_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/cupti_job.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKING_KILLS = 20,
    TURN_KILLS = 5, /* of each kind */
    SOAK_FACTOR = 10,
    TWO_BUFFERS = 2 * (256 << 10) / 256, /* launches: a call and a kernel take 256 bytes */
    BURST = 64,
    BURSTS_MAX = 20, /* before a turn */
    KERNEL_NS = 1000,
    LAST_KERNEL_NS = 20000000, /* what a process waits for at its end */
};

/* What the job is doing when it is killed, and how long after that has begun at most: our own
 * flushes come once a second; a look at the launcher's wish, every 50 ms; what still runs is waited
 * for 200 ms. */
struct kind {
    const char *name;
    void (*turn)(void); /* NULL: it works */
    unsigned after_max_us;
};

/* What the job has done so far, whatever becomes of it. */
static struct progress {
    uint64_t launched;
    uint64_t maybe; /* launched while recording may have paused still */
    uint64_t safe;  /* of those launched, what CUPTI has given back in any case */
    uint64_t killed_ns;
    uint64_t begun_ns;
} * progress;

static const struct kind *kind;
static unsigned after_us; /* of this run */
static unsigned bursts;

static void (*launch)(uint32_t count, uint64_t kernel_ns, uint32_t thread);
static int (*is_enabled)(int kind);
static struct lac_spool_header *header;

static void sleep_us(unsigned us)
{
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

    (void)nanosleep(&pause, NULL);
}

static void *kill_after_a_while(void *unused)
{
    (void)unused;
    sleep_us(after_us);
    progress->killed_ns = lac_monotonic_ns();
    (void)kill(getpid(), SIGKILL);
    return NULL;
}

static void kill_soon(void)
{
    pthread_t killer;

    ck_assert_int_eq(pthread_create(&killer, NULL, kill_after_a_while, NULL), 0);
}

static void work(void)
{
    launch(BURST, KERNEL_NS, 1);
    progress->launched += BURST;
    sleep_us(1000);
}

/* Another profiler has CUPTI for a moment, again and again. */
static void yield_and_come_back(void)
{
    lac_cupti_api()->gpu_yield(1, "torch.profiler");
    progress->safe = progress->launched;
    lac_cupti_api()->gpu_yield(0, "");
    work();
}

static void wish(enum lac_spool_stop what)
{
    const int wanted = what != LAC_SPOOL_OFF;

    __atomic_store_n(&header->stop, (uint32_t)what, __ATOMIC_RELEASE);
    while (is_enabled(CUPTI_KIND_CONCURRENT_KERNEL) != wanted) {
        sleep_us(1000);
    }
}

/* As a launcher has it for a long pause. */
static void pause_and_go_on(void)
{
    wish(LAC_SPOOL_OFF);
    wish(LAC_SPOOL_PAUSE);
    wish(LAC_SPOOL_RECORD);
    progress->maybe += BURST;
    launch(BURST, KERNEL_NS, 1);
    sleep_us(1000);
}

static void end(void)
{
    launch(1, LAST_KERNEL_NS, 1);
    progress->launched++;
    exit(0);
}

static const struct kind kinds[] = {
    {"works", NULL, 120000},
    {"works for long", NULL, 2500000},
    {"yields", yield_and_come_back, 30000},
    {"pauses", pause_and_go_on, 300000},
    {"ends", end, 40000},
};

static void job(void)
{
    progress->begun_ns = lac_monotonic_ns();
    lac_cupti_initialize();
    *(void **)&launch = lac_cupti_stand_in("stand_in_launch");
    *(void **)&is_enabled = lac_cupti_stand_in("stand_in_enabled");
    header = lac_cupti_own_header();
    if (kind->turn == NULL) {
        kill_soon();
    }
    for (unsigned i = 0; i < bursts || kind->turn == NULL; i++) {
        work();
    }
    kill_soon();
    for (;;) {
        kind->turn();
    }
}

static bool reports(const char *code, uint64_t count)
{
    for (uint32_t i = 0; i < lac_cupti_model->report_count; i++) {
        if (strcmp(lac_cupti_model->report[i].code, code) == 0) {
            return lac_cupti_model->report[i].count == count;
        }
    }
    return false;
}

/* Kept, all with times of its life, lost as many as the buffers hold at most. */
static void check_killed(bool has_ended)
{
    const uint64_t until_ns = has_ended ? lac_monotonic_ns() : progress->killed_ns;
    const uint64_t life_ns = until_ns - progress->begun_ns;
    const uint64_t calls = lac_cupti_count(LAC_SLICE_API);
    const uint64_t lost = lac_cupti_model->info.dropped_count;
    uint64_t kernels = 0;

    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        const int64_t start_ns = lac_cupti_model->slices.start_ns[i];
        const int64_t dur_ns = lac_cupti_model->slices.dur_ns[i];

        if (lac_cupti_model->slices.kind[i] == LAC_SLICE_KERNEL) {
            ck_assert(dur_ns == KERNEL_NS || dur_ns == LAST_KERNEL_NS);
            kernels++;
        }
        ck_assert_int_ge(start_ns, 0);
        ck_assert_int_le(start_ns + dur_ns, (int64_t)life_ns + 1000000000);
    }
    ck_assert_uint_le(kernels, progress->launched + progress->maybe + BURST);
    ck_assert_uint_ge(kernels, progress->safe);
    if (has_ended) { /* the last one may have been in progress for too long */
        ck_assert_uint_ge(kernels + 1, progress->launched);
        ck_assert_uint_eq(kernels + lost, progress->launched);
        return;
    }
    /* the kill may have come between a kernel's record and its call's; the last one may have no times */
    ck_assert_uint_le(kernels, calls + 1);
    ck_assert_uint_le(calls, kernels + 2);
    ck_assert_msg(kernels + TWO_BUFFERS + BURST >= progress->launched, "%s, %u us: %u of %u",
                  kind->name, after_us, (unsigned)kernels, (unsigned)progress->launched);
    /* nothing but what CUPTI had not given back, which is told, and that last one */
    ck_assert_msg(lost == 0 || reports("gpu_buffers_lost", lost) ||
                      reports("gpu_buffers_lost", lost - 1) || (kind->turn == end && lost == 1),
                  "%s, %u us: %u lost", kind->name, after_us, (unsigned)lost);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void kill_it(const struct kind *which, uint32_t *random)
{
    int status;
    bool has_ended;

    kind = which;
    after_us = next_random(random) % kind->after_max_us;
    bursts = 1 + next_random(random) % BURSTS_MAX;
    memset(progress, 0, sizeof(*progress));
    status = lac_job_run(job);
    has_ended = kind->turn == end && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ck_assert_msg(has_ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL), "%s: %d",
                  kind->name, status);
    if (lac_job_spool_count() > 0) {
        lac_cupti_import();
        check_killed(has_ended);
    }
    lac_job_teardown();
    lac_job_setup();
}

static int factor(void)
{
    const char *const soak = getenv("LACUNA_SOAK");

    return soak != NULL && strcmp(soak, "1") == 0 ? SOAK_FACTOR : 1;
}

static void setup(void)
{
    lac_job_setup();
    progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(progress, MAP_FAILED);
}

static void teardown(void)
{
    (void)munmap(progress, sizeof(*progress));
    lac_job_teardown();
}

START_TEST(a_process_that_is_killed_at_any_moment_leaves_whole_records)
{
    uint32_t random = 20261122;

    for (int i = 0; i < WORKING_KILLS * factor(); i++) {
        kill_it(&kinds[i % 4 == 3], &random);
    }
}
END_TEST

START_TEST(a_process_that_is_killed_while_it_yields_pauses_or_ends_leaves_whole_records)
{
    uint32_t random = 20261128;

    for (int i = 0; i < TURN_KILLS * factor(); i++) {
        for (size_t which = 2; which < LAC_COUNT_OF(kinds); which++) {
            kill_it(&kinds[which], &random);
        }
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("cupti_kills");
    TCase *const tcase = tcase_create("killed");

    tcase_set_timeout(tcase, 240 * (double)factor());
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_process_that_is_killed_at_any_moment_leaves_whole_records);
    tcase_add_test(tcase,
                   a_process_that_is_killed_while_it_yields_pauses_or_ends_leaves_whole_records);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
