#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/io_full.h"
#include "collector/base/monotonic.h"
#include "collector/base/terminal_text.h"
#include "collector/gather/launcher_note.h"
#include "collector/gather/shared_spool.h"
#include "collector/gather/spool_owner.h"
#include "collector/launch/window.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: lacuna window DIR [--duration S | --steps N] [--wait]\n"
    "\n"
    "Records a window now, in a job that runs. DIR is the folder of its recording (lacuna run "
    "-o),\n"
    "which this host must see; or the spool folder of a job that has the variables of\n"
    "`lacuna env --on-demand`, on the job's own host. A folder of ranks: a window in each.\n"
    "\n"
    "  --duration S   for S seconds\n"
    "  --steps N      until N more training steps have ended\n"
    "                 (default: 20 steps, or 10 s where no steps are seen)\n"
    "  --wait         wait until the window has ended\n"
    "  --timeout S    wait S seconds for the launcher's answer (default: 30)\n"
    "\n"
    "Exit status: 0 a window is open, 1 no job runs there, or it refuses.\n";

enum { PATH_BYTES = 4096, LAUNCHERS_MAX = 4096, LOOK_MS = 50, TELL_MS = 100, STEPS_DEFAULT = 20 };

static const uint64_t DEFAULT_NS = UINT64_C(10000000000);

/* One launcher that is asked. */
struct asked {
    char *path;
    struct lac_launcher_note note;
    enum lac_window_state state;
    bool was_told; /* what it answered */
};

struct command {
    const char *folder;
    struct lac_window_request request;
    uint64_t timeout_ms;
    bool waits;
    uint64_t began_ns; /* the window */
    struct asked *asked;
    size_t count;
};

static int usage(const char *problem)
{
    (void)fprintf(stderr, "lacuna window: %s (lacuna window --help)\n", problem);
    return 2;
}

static bool parse_seconds(const char *text, uint64_t *ret_ms)
{
    char *end = NULL;
    const double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds > 0 && seconds <= LAC_WINDOW_MS_MAX / 1e3)) {
        return false;
    }
    *ret_ms = (uint64_t)(seconds * 1e3);
    return *ret_ms > 0;
}

static bool parse_count(const char *text, uint64_t *ret)
{
    char *end = NULL;

    if (text[0] < '1' || text[0] > '9') {
        return false;
    }
    *ret = strtoull(text, &end, 10);
    return *end == '\0' && *ret <= LAC_WINDOW_STEPS_MAX;
}

/* @return -1: go on; else the exit status */
static int parse(int argc, char **argv, struct command *ret)
{
    *ret = (struct command){.timeout_ms = 30000};
    for (int i = 1; i < argc; i++) {
        const char *const value = i + 1 < argc ? argv[i + 1] : "";
        bool is_good = true;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--wait") == 0) {
            ret->waits = true;
        } else if (strcmp(argv[i], "--duration") == 0) {
            is_good = parse_seconds(value, &ret->request.duration_ms);
            i++;
        } else if (strcmp(argv[i], "--steps") == 0) {
            is_good = parse_count(value, &ret->request.steps);
            i++;
        } else if (strcmp(argv[i], "--timeout") == 0) {
            is_good = parse_seconds(value, &ret->timeout_ms);
            i++;
        } else if (argv[i][0] == '-' || ret->folder != NULL) {
            return usage(ret->folder != NULL ? "give one folder" : "unknown option");
        } else {
            ret->folder = argv[i];
        }
        if (!is_good) {
            return usage("not a valid value");
        }
    }
    if (ret->folder == NULL) {
        return usage("give the folder of the recording");
    }
    return ret->request.duration_ms > 0 && ret->request.steps > 0
               ? usage("--duration and --steps do not go together")
               : -1;
}

/* Unlike that of any other request. */
static void make_id(char *out)
{
    uint8_t bytes[16];
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || lac_read_full(fd, bytes, sizeof(bytes)) != (int64_t)sizeof(bytes)) {
        const uint64_t parts[2] = {lac_monotonic_ns(), (uint64_t)getpid()};

        memcpy(bytes, parts, sizeof(bytes));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    lac_hex_encode(bytes, sizeof(bytes), out);
}

/* ---- jobs with a launcher */

/* @return whether it is the folder of one that may run */
static bool add(struct command *command, const char *path, enum lac_launcher_state *ret_state)
{
    struct lac_launcher_note note;
    struct asked *grown;

    *ret_state = lac_launcher_note_read(path, &note);
    if (*ret_state != LAC_LAUNCHER_RUNS && *ret_state != LAC_LAUNCHER_ELSEWHERE) {
        return false;
    }
    grown = command->count < LAUNCHERS_MAX
                ? realloc(command->asked, (command->count + 1) * sizeof(*grown))
                : NULL;
    if (grown == NULL) {
        return false;
    }
    command->asked = grown;
    grown[command->count] = (struct asked){.path = strdup(path), .note = note};
    command->count += grown[command->count].path != NULL;
    return true;
}

/* The launchers of the folder itself, or of its ranks. */
static void find_launchers(struct command *command, enum lac_launcher_state *ret_state)
{
    DIR *folder;
    enum lac_launcher_state state;

    if (add(command, command->folder, ret_state)) {
        return;
    }
    folder = opendir(command->folder);
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[PATH_BYTES];
        const int length = snprintf(path, sizeof(path), "%s/%s", command->folder, entry->d_name);

        if (entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof(path)) {
            (void)add(command, path, &state);
        }
    }
    (void)closedir(folder);
}

static void say(const struct asked *asked, const char *words)
{
    char path[PATH_BYTES];
    char shown[4 * LAC_WINDOW_WORDS_BYTES];

    (void)fprintf(
        asked->state == LAC_WINDOW_REFUSED ? stderr : stdout, "%s: %s%s (%s, process %d)\n",
        lac_terminal_string(asked->path, path, sizeof(path)),
        asked->state == LAC_WINDOW_REFUSED ? "no window: " : "",
        lac_terminal_string(words, shown, sizeof(shown)), asked->note.host, (int)asked->note.pid);
    (void)fflush(stdout);
}

/* @return whether nothing more is awaited of it */
static bool look(const struct command *command, struct asked *asked)
{
    char words[LAC_WINDOW_WORDS_BYTES];
    const enum lac_window_state state =
        lac_window_read_answer(asked->path, command->request.id, words);
    struct lac_launcher_note note;

    if (state != LAC_WINDOW_NONE && state != asked->state) {
        asked->state = state;
        if (state != LAC_WINDOW_DONE || command->waits || !asked->was_told) {
            say(asked, words);
        }
        asked->was_told = true;
    }
    if (asked->state == LAC_WINDOW_DONE || asked->state == LAC_WINDOW_REFUSED) {
        return true;
    }
    if (asked->state == LAC_WINDOW_RECORDING) {
        const enum lac_launcher_state launcher = lac_launcher_note_read(asked->path, &note);

        /* the job has ended, and the window with it */
        return !command->waits || launcher == LAC_LAUNCHER_NONE || launcher == LAC_LAUNCHER_DEAD;
    }
    return false;
}

static int ask_launchers(struct command *command)
{
    const uint64_t end_ns = lac_monotonic_ns() + command->timeout_ms * 1000000;
    char shown[PATH_BYTES];
    bool is_over = false;
    int status = 0;

    for (size_t i = 0; i < command->count; i++) {
        struct asked *const asked = &command->asked[i];

        if (!lac_window_ask(asked->path, &command->request)) {
            const int problem = errno;

            (void)fprintf(stderr, "lacuna window: cannot write to %s: %s\n",
                          lac_terminal_string(asked->path, shown, sizeof(shown)),
                          strerror(problem));
            asked->state = LAC_WINDOW_REFUSED;
        }
    }
    while (!is_over) {
        const bool is_late = lac_monotonic_ns() >= end_ns;

        is_over = true;
        for (size_t i = 0; i < command->count; i++) {
            struct asked *const asked = &command->asked[i];

            is_over =
                (look(command, asked) || (is_late && asked->state == LAC_WINDOW_NONE)) && is_over;
        }
        if (!is_over) {
            (void)usleep(LOOK_MS * 1000);
        }
    }
    for (size_t i = 0; i < command->count; i++) {
        struct asked *const asked = &command->asked[i];

        if (asked->state == LAC_WINDOW_NONE) {
            lac_window_withdraw(asked->path);
            (void)fprintf(stderr,
                          "lacuna window: no answer from the launcher of %s (%s, process %d): it "
                          "has ended, was killed or is stopped\n",
                          lac_terminal_string(asked->path, shown, sizeof(shown)), asked->note.host,
                          (int)asked->note.pid);
        }
        status =
            asked->state == LAC_WINDOW_RECORDING || asked->state == LAC_WINDOW_DONE ? status : 1;
    }
    return status;
}

/* ---- jobs without one: the spools of their processes are told */

static volatile sig_atomic_t is_interrupted;

static void on_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

struct told {
    unsigned processes;
    unsigned recording; /* that did so before */
    uint64_t steps;     /* of the furthest */
};

/* In a container its number means nothing to us. */
static bool is_in_other_pid_space(const struct lac_spool_header *header)
{
    static const char key[] = "pid_ns=";
    char own[80];
    ssize_t length;

    (void)snprintf(own, sizeof(own), "%s", key);
    length = readlink("/proc/self/ns/pid", own + sizeof(key) - 1, sizeof(own) - sizeof(key));
    own[sizeof(key) - 1 + (length > 0 ? (size_t)length : 0)] = '\0';
    return memmem(header->text, header->text_bytes, key, sizeof(key) - 1) != NULL &&
           memmem(header->text, header->text_bytes, own, strlen(own) + 1) == NULL;
}

/* Every spool there, also of processes that began since. */
static struct told tell(const char *path, enum lac_spool_stop wish)
{
    DIR *const folder = opendir(path);
    struct told told = {0};

    if (folder == NULL) {
        return told;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        struct lac_shared_spool spool = {.fd = -1};
        struct lac_spool_header header;
        char name[PATH_BYTES];

        if (!lac_spool_is_name(entry->d_name) ||
            (size_t)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= sizeof(name)) {
            continue;
        }
        if (lac_shared_open(&spool, name, true, &header) == LAC_SHARED_OPENED &&
            (is_in_other_pid_space(&header) || lac_spool_owner_is_written(entry->d_name))) {
            const uint64_t steps = lac_shared_look(&spool).step_count;

            told.processes++;
            told.recording += header.stop == LAC_SPOOL_RECORD;
            told.steps = steps > told.steps ? steps : told.steps;
            if (header.stop != (uint32_t)wish) {
                lac_shared_tell(&spool, wish);
            }
        }
        lac_shared_close(&spool);
    }
    (void)closedir(folder);
    return told;
}

static void hold_window(const struct command *command, struct told first)
{
    const bool by_steps =
        command->request.steps > 0 || (command->request.duration_ms == 0 && first.steps > 0);
    const uint64_t last_step =
        first.steps + (command->request.steps > 0 ? command->request.steps : STEPS_DEFAULT);
    const uint64_t end_ns = lac_monotonic_ns() + (command->request.duration_ms > 0
                                                      ? command->request.duration_ms * 1000000
                                                  : by_steps ? (uint64_t)LAC_WINDOW_MS_MAX * 1000000
                                                             : DEFAULT_NS);
    struct told now = first;

    while (now.processes > 0 && !is_interrupted && lac_monotonic_ns() < end_ns &&
           (!by_steps || now.steps < last_step)) {
        (void)usleep(TELL_MS * 1000);
        now = tell(command->folder, LAC_SPOOL_RECORD);
    }
    (void)tell(command->folder, LAC_SPOOL_OFF);
    (void)printf("%s: the window has ended: %.1f s", command->folder,
                 (double)(lac_monotonic_ns() - command->began_ns) / 1e9);
    if (now.steps > first.steps) {
        (void)printf(", %" PRIu64 " steps", now.steps - first.steps);
    }
    (void)printf("; lacuna gather %s\n", command->folder);
}

static int ask_processes(struct command *command)
{
    static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    struct told first;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    for (size_t i = 0; i < LAC_COUNT_OF(endings); i++) {
        (void)sigaction(endings[i], &action, NULL);
    }
    command->began_ns = lac_monotonic_ns();
    first = tell(command->folder, LAC_SPOOL_RECORD);
    if (first.processes == 0) {
        (void)fprintf(stderr,
                      "lacuna window: no process of this host records into %s any more, and no "
                      "launcher does\n",
                      command->folder);
        return 1;
    }
    if (first.recording > 0) {
        (void)fprintf(
            stderr,
            "lacuna window: %u processes record into %s all the time already: `lacuna env "
            "--on-demand` gives variables for windows\n",
            first.recording, command->folder);
        return 1;
    }
    (void)printf("%s: %u processes record now\n", command->folder, first.processes);
    (void)fflush(stdout);
    hold_window(command, first);
    return 0;
}

/* ---- */

static void free_asked(struct command *command)
{
    for (size_t i = 0; i < command->count; i++) {
        free(command->asked[i].path);
    }
    free(command->asked);
}

int lac_window_command(int argc, char **argv)
{
    enum lac_launcher_state state = LAC_LAUNCHER_NONE;
    struct command command;
    int status = parse(argc, argv, &command);
    DIR *folder;

    if (status >= 0) {
        return status;
    }
    folder = opendir(command.folder);
    if (folder == NULL) {
        (void)fprintf(stderr, "lacuna window: cannot open the folder %s: %s\n", command.folder,
                      strerror(errno));
        return 1;
    }
    (void)closedir(folder);
    make_id(command.request.id);
    find_launchers(&command, &state);
    if (command.count > 0) {
        status = ask_launchers(&command);
    } else if (state == LAC_LAUNCHER_DEAD) {
        (void)fprintf(stderr, "lacuna window: the launcher of %s was killed, and its job with it\n",
                      command.folder);
        status = 1;
    } else {
        status = ask_processes(&command);
    }
    free_asked(&command);
    return status;
}
