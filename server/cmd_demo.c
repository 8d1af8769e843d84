#include "analysis/model/status.h"
#include "server/commands.h"
#include "server/demo/exam.h"
#include "server/demo/series.h"
#include "server/options.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct lac_option TABLE[] = {
    {.name = "in-phase",
     .help = "also DIR/in-phase: all workers in step, fetch times varying by 2 %",
     .flag_only = true},
    {.name = "seed",
     .value = "N",
     .help = "of that variation, or of the first random trace (1)",
     .flag_only = true},
    {.name = "random",
     .value = "N",
     .help = "instead N random training loops, of seeds counted up from --seed",
     .flag_only = true},
    {.name = "causes",
     .value = "one|several",
     .help = "what each random loop has wrong with it (drawn)",
     .flag_only = true},
    {.name = "ranks", .help = "random loops of several ranks, a trace for each", .flag_only = true},
    {.name = "phases",
     .help = "random loops with validations, checkpoints, epochs and recompilations instead",
     .flag_only = true},
    {0},
};

static const char USAGE[] =
    "lacuna demo DIR [--in-phase] [--seed N]\n"
    "       lacuna demo DIR --random N [--seed S] [--causes one|several] [--ranks]\n"
    "       lacuna demo DIR --random N [--seed S] --phases\n"
    "Writes a simulated training series into DIR: six traces of one training, one change each, "
    "and\nbeside each what is true of it (NAME.truth.json). With --random, loops that nobody "
    "chose, "
    "each\nrun again without each of its causes: what a diagnosis should have said.";

static void show(const char *path)
{
    (void)fprintf(stderr, "\r\033[Kwriting %s (simulated)", path);
}

static int write_series(const struct lac_options *options, uint64_t seed, bool on_terminal)
{
    struct lac_error error = {0};
    const char *dir = options->operands[0];
    enum lac_status status = lac_demo_write_series(dir, lac_options_on(options, "in-phase", false),
                                                   seed, on_terminal ? show : NULL, &error);
    if (on_terminal) {
        (void)fputs("\r\033[K", stderr);
    }
    if (status != LAC_OK) {
        (void)fprintf(stderr, "lacuna demo: %s\n", error.message);
        return 1;
    }
    (void)printf("%s: %d simulated traces, %s.json to %s.json, the truth beside each\n", dir,
                 LAC_DEMO_STAGE_COUNT, lac_demo_stage(0)->name,
                 lac_demo_stage(LAC_DEMO_STAGE_COUNT - 1)->name);
    return 0;
}

static int write_random(const struct lac_options *options, uint64_t seed, uint64_t count,
                        bool on_terminal)
{
    struct lac_error error = {0};
    const char *causes = lac_options_text(options, "causes", NULL);
    if (causes != NULL && strcmp(causes, "one") != 0 && strcmp(causes, "several") != 0) {
        (void)fprintf(stderr, "lacuna demo: --causes is one or several, not %s\n", causes);
        return 2;
    }
    if (lac_options_on(options, "phases", false) &&
        (causes != NULL || lac_options_on(options, "ranks", false))) {
        (void)fputs("lacuna demo: --phases goes with neither --causes nor --ranks\n", stderr);
        return 2;
    }
    struct lac_demo_exam exam = {
        .dir = options->operands[0],
        .seed = seed,
        .count = count,
        .how_many = causes == NULL               ? 0
                    : strcmp(causes, "one") == 0 ? 1
                                                 : 2,
        .with_ranks = lac_options_on(options, "ranks", false),
        .with_phases = lac_options_on(options, "phases", false),
        .progress = on_terminal ? show : NULL,
    };
    enum lac_status status = lac_demo_write_exam(&exam, &error);
    if (on_terminal) {
        (void)fputs("\r\033[K", stderr);
    }
    if (status != LAC_OK) {
        (void)fprintf(stderr, "lacuna demo: %s\n", error.message);
        return 1;
    }
    (void)printf("%s: %" PRIu64 " random training loops (simulated), the truth beside each\n",
                 exam.dir, count);
    return 0;
}

int lac_cmd_demo(int argc, char **argv)
{
    struct lac_options options;
    int exit_status = lac_options_parse(&options, TABLE, USAGE, argc, argv);
    if (exit_status >= 0) {
        lac_options_done(&options);
        return exit_status;
    }
    uint64_t seed = 1;
    uint64_t count = 0;
    bool on_terminal = isatty(STDERR_FILENO) != 0;
    exit_status = 2;
    if (options.operand_count != 1) {
        (void)fputs("lacuna demo: name one folder to write to; see lacuna demo --help\n", stderr);
    } else if (lac_options_number(&options, "seed", 0, UINT64_MAX / 2, 1, &seed) &&
               lac_options_number(&options, "random", 0, 1000000, 0, &count)) {
        exit_status = count > 0 ? write_random(&options, seed, count, on_terminal)
                                : write_series(&options, seed, on_terminal);
    }
    lac_options_done(&options);
    return exit_status;
}
