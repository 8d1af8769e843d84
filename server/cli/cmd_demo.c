#include "analysis/model/status.h"
#include "server/cli/commands.h"
#include "server/cli/demo_show.h"
#include "server/cli/options.h"
#include "server/demo/series.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct lac_option TABLE[] = {
    {.name = "listen",
     .value = "ADDR:PORT",
     .help = "without DIR: of the page (127.0.0.1:0, any free port)",
     .flag_only = true},
    {.name = "open",
     .help = "without DIR: show it in a browser (default: on a terminal with a display)",
     .flag_only = true},
    {.name = "in-phase",
     .help = "also DIR/in-phase: workers in phase, fetch times varying by 2 %",
     .flag_only = true},
    {.name = "seed", .value = "N", .help = "seed of that variation (1)", .flag_only = true},
    {0},
};

static const char USAGE[] =
    "lacuna demo [DIR]\n"
    "Without DIR: simulates a training job, prints why its GPU waited, and serves its traces on a\n"
    "page of this machine until Ctrl-C.\n"
    "With DIR: writes a simulated training series into it: six traces of one training, one change\n"
    "each, each with its ground truth (NAME.truth.json).";

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
    (void)printf("%s: %d simulated traces, %s.json to %s.json, each with its ground truth\n", dir,
                 LAC_DEMO_STAGE_COUNT, lac_demo_stage(0)->name,
                 lac_demo_stage(LAC_DEMO_STAGE_COUNT - 1)->name);
    return 0;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

/* A person at this machine. */
static bool has_screen(void)
{
    return isatty(STDOUT_FILENO) != 0 && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) &&
           !is_set("SSH_CONNECTION");
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
    bool on_terminal = isatty(STDERR_FILENO) != 0;
    exit_status = 2;
    if (options.operand_count > 1) {
        (void)fputs("lacuna demo: give one folder to write to (see lacuna demo --help)\n", stderr);
    } else if (!lac_options_number(&options, "seed", 0, UINT64_MAX / 2, 1, &seed)) {
        exit_status = 2;
    } else if (options.operand_count == 0) {
        const struct lac_demo_show show = {.listen =
                                               lac_options_text(&options, "listen", "127.0.0.1:0"),
                                           .seed = seed,
                                           .opens = lac_options_on(&options, "open", has_screen())};
        exit_status = lac_demo_show(&show);
    } else {
        exit_status = write_series(&options, seed, on_terminal);
    }
    lac_options_done(&options);
    return exit_status;
}
