#include "collector/launch/run_options.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: lacuna run [OPTION]... -- CMD [ARG]...\n"
    "\n"
    "Runs CMD unchanged and records its whole process tree: NVTX ranges, the GPU, and in Python\n"
    "the DataLoader with its workers. The exit status is CMD's.\n"
    "\n"
    "  -o DIR          folder for the recording (default: ./CMD-TIME.lacuna); an existing one\n"
    "                  moves to DIR.old; several tasks or ranks each get a folder inside\n"
    "  --quiet         print nothing unless something is wrong\n"
    "  --strict        if nothing can be recorded, exit with 1 and do not run CMD (default: CMD\n"
    "                  runs unrecorded, and one line says why)\n"
    "  --delay S       start recording after S seconds\n"
    "  --duration S    record for S seconds\n"
    "  --steps A:B     record training steps A to B, counted from 1 (of optimizers or frameworks)\n"
    "  --all           record everything\n"
    "  --cost          measure the cost of recording early: after 20 steps, alternate ten steps\n"
    "                  with and ten without recording\n"
    "  --limit BYTES   largest size of the recording, such as 500m or 4g (default: 4g)\n"
    "  --server URL    send the recording there while the job runs (or LACUNA_SERVER)\n"
    "  --token-file F  file with the server's token (or LACUNA_TOKEN_FILE, LACUNA_TOKEN)\n"
    "  --project P     project on the server (or LACUNA_PROJECT)\n"
    "\n"
    "Without --duration, --steps and --all: records everything until 60 steps and one minute\n"
    "have passed, then alternates ten steps with and ten without until the cost of recording\n"
    "is known, then records 20 steps every 10 minutes. A job whose steps are not seen is\n"
    "recorded in full. Threads, processes and GPUs are sampled all the time.\n"
    "\n"
    "Ctrl-C once ends the recording and shows the verdict, and the job continues; twice ends the\n"
    "job. A job that reads the terminal gets it, and Ctrl-C with it. Ctrl-Z stops both. Signals\n"
    "sent to this program go to CMD; if it is killed with SIGKILL, so is CMD.\n"
    "LACUNA_DISABLE=1 runs CMD and records nothing; LACUNA_GPM=0 leaves the GPU's own counters\n"
    "to another profiler.\n"
    "LACUNA_DEBUG=1, 2 or 3 prints on stderr what the collector does, in the job and in the\n"
    "launcher: 1 what is attached or missing, 2 also segments, buffers and forks, 3 every event.\n"
    "LACUNA_DEBUG=spool:3,cupti:1 selects areas: process nvtx spool names hook cupti (in the\n"
    "job's processes), launch gather sample push (in the launcher).\n";

static int usage(const char *problem, const char *what)
{
    (void)fprintf(stderr, "lacuna run: %s%s (lacuna run --help)\n", problem, what);
    return 2;
}

/* Seconds, with a fraction if need be. */
static bool parse_seconds(const char *text, uint64_t *ret_ms)
{
    char *end = NULL;
    const double seconds = strtod(text, &end);

    *ret_ms = (uint64_t)(seconds * 1e3);
    return end != text && *end == '\0' && seconds >= 0 && seconds < 1e9;
}

static bool parse_steps(const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
    char *end = NULL;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    *ret_first = strtoull(text, &end, 10);
    if (*end != ':' || end[1] < '0' || end[1] > '9') {
        return false;
    }
    *ret_last = strtoull(end + 1, &end, 10);
    return *end == '\0' && *ret_first >= 1 && *ret_last >= *ret_first;
}

static bool parse_bytes(const char *text, uint64_t *ret_bytes)
{
    char *end = NULL;
    unsigned shift = 0;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    *ret_bytes = strtoull(text, &end, 10);
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    end += shift != 0;
    if (*ret_bytes == 0 || *ret_bytes > UINT64_MAX >> 32) {
        return false;
    }
    *ret_bytes <<= shift;
    return *end == '\0';
}

/* One option that takes a value; false: its value makes no sense. */
static bool take_value(struct lac_run_options *options, const char *name, const char *value,
                       bool *ret_known)
{
    *ret_known = true;
    if (strcmp(name, "-o") == 0) {
        options->output = value;
        return value[0] != '\0';
    }
    if (strcmp(name, "--duration") == 0) {
        return parse_seconds(value, &options->duration_ms) && options->duration_ms > 0;
    }
    if (strcmp(name, "--delay") == 0) {
        return parse_seconds(value, &options->delay_ms);
    }
    if (strcmp(name, "--steps") == 0) {
        return parse_steps(value, &options->step_first, &options->step_last);
    }
    if (strcmp(name, "--limit") == 0) {
        return parse_bytes(value, &options->limit_bytes);
    }
    if (strcmp(name, "--server") == 0) {
        options->server = value;
        return true;
    }
    if (strcmp(name, "--token-file") == 0) {
        options->token_file = value;
        return true;
    }
    if (strcmp(name, "--project") == 0) {
        options->project = value;
        return true;
    }
    *ret_known = false;
    return true;
}

int lac_run_options_parse(int argc, char **argv, struct lac_run_options *ret)
{
    const char *const limit = getenv("LACUNA_LIMIT");

    *ret = (struct lac_run_options){.limit_bytes = (uint64_t)4 << 30};
    if (limit != NULL && !parse_bytes(limit, &ret->limit_bytes)) {
        return usage("LACUNA_LIMIT is not a size: ", limit);
    }
    for (int i = 1; i < argc && ret->command == NULL; i++) {
        bool known = false;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--") == 0) {
            ret->command = &argv[i + 1];
        } else if (strcmp(argv[i], "--quiet") == 0) {
            ret->quiet = true;
        } else if (strcmp(argv[i], "--strict") == 0) {
            ret->strict = true;
        } else if (strcmp(argv[i], "--all") == 0) {
            ret->all = true;
        } else if (strcmp(argv[i], "--cost") == 0) {
            ret->cost = true;
        } else if (argv[i][0] != '-') {
            ret->command = &argv[i];
        } else if (i + 1 >= argc || strcmp(argv[i + 1], "--") == 0) {
            return usage("unknown option, or one without its value: ", argv[i]);
        } else if (!take_value(ret, argv[i], argv[i + 1], &known)) {
            return usage("not a valid value: ", argv[i + 1]);
        } else if (!known) {
            return usage("unknown option ", argv[i]);
        } else {
            i++;
        }
    }
    return ret->command == NULL || ret->command[0] == NULL ? usage("no command to run after --", "")
                                                           : -1;
}
