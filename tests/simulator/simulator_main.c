/* simulator DIR ...: random training loops and what is true of them, for the tests of the
 * diagnosis. */
#include "analysis/model/status.h"
#include "tests/simulator/random_loop.h"

#include <errno.h>
#include <getopt.h> /* IWYU pragma: keep */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "simulator DIR [--count N] [--seed S] [--causes one|several] [--ranks]\n"
    "simulator DIR [--count N] [--seed S] --phases\n"
    "Writes N (1) random training loops of seeds from S (1) on into DIR, each run again without\n"
    "each of its causes: what a diagnosis should have said stands beside each (NAME.truth.json).\n"
    "\n"
    "  --causes one|several  what each loop has wrong with it (drawn)\n"
    "  --ranks               loops of several ranks, a trace for each\n"
    "  --phases              loops with validations, checkpoints, epochs and recompilations\n";

enum { COUNT_MAX = 1000000 };

static bool number_of(const char *text, uint64_t max, uint64_t *ret_number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || number > max) {
        (void)fprintf(stderr, "simulator: %s: need a whole number up to %" PRIu64 "\n", text, max);
        return false;
    }
    *ret_number = number;
    return true;
}

static bool causes_of(const char *text, int *ret_how_many)
{
    if (strcmp(text, "one") != 0 && strcmp(text, "several") != 0) {
        (void)fprintf(stderr, "simulator: --causes is one or several, not %s\n", text);
        return false;
    }
    *ret_how_many = strcmp(text, "one") == 0 ? 1 : 2;
    return true;
}

/* -1 to go on, otherwise the exit status */
static int parse(int argc, char **argv, struct lac_random_loops *loops)
{
    static const struct option OPTIONS[] = {
        {"count", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"causes", required_argument, NULL, 'c'},
        {"ranks", no_argument, NULL, 'r'},
        {"phases", no_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool is_right = true;
    for (int letter; is_right && (letter = getopt_long(argc, argv, "h", OPTIONS, NULL)) != -1;) {
        switch (letter) {
        case 'n':
            is_right = number_of(optarg, COUNT_MAX, &loops->count);
            break;
        case 's':
            is_right = number_of(optarg, UINT64_MAX / 2, &loops->seed);
            break;
        case 'c':
            is_right = causes_of(optarg, &loops->how_many);
            break;
        case 'r':
            loops->with_ranks = true;
            break;
        case 'p':
            loops->with_phases = true;
            break;
        case 'h':
            (void)fputs(USAGE, stdout);
            return 0;
        default:
            is_right = false;
        }
    }
    if (is_right && loops->with_phases && (loops->how_many != 0 || loops->with_ranks)) {
        (void)fputs("simulator: --phases goes with neither --causes nor --ranks\n", stderr);
        is_right = false;
    } else if (is_right && optind + 1 != argc) {
        (void)fputs("simulator: name one folder to write to; see simulator --help\n", stderr);
        is_right = false;
    }
    if (!is_right) {
        return 2;
    }
    loops->dir = argv[optind];
    return -1;
}

int main(int argc, char **argv)
{
    struct lac_random_loops loops = {.seed = 1, .count = 1};
    int exit_status = parse(argc, argv, &loops);
    if (exit_status >= 0) {
        return exit_status;
    }
    struct lac_error error = {0};
    if (lac_random_loops_write(&loops, &error) != LAC_OK) {
        (void)fprintf(stderr, "simulator: %s\n", error.message);
        return 1;
    }
    return 0;
}
