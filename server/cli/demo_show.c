#include "server/cli/demo_show.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/cli/ending.h"
#include "server/demo/series.h"
#include "server/http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FOLDER_BYTES = 1024,
    PATH_BYTES = FOLDER_BYTES + 64,
    ADDRESS_BYTES = 3072,
    KEY_BYTES = 128,
    SAID_BYTES = 8192,
    ARGUMENTS_MAX = 16,
    FOLDERS_OPEN = 16,
    REMOVALS_MAX = 100,
    START_S = 60, /* for the server to say its address */
};

static const char SELF[] = "/proc/self/exe";

struct demo {
    /* Held while the folder is made or a child starts that writes into it, and from the folder's
     * removal on: all in it is written by those children, so that none is written after it. */
    pthread_mutex_t lock;
    char folder[FOLDER_BYTES];
    volatile pid_t
        maker; /* writes the traces, then imports them; read by the thread that removes */
    volatile pid_t server;
    char address[ADDRESS_BYTES]; /* without the key */
    char remote[ADDRESS_BYTES];  /* the server's line on reaching it from another machine */
    char key[KEY_BYTES];
};

static int complain(const char *what)
{
    (void)fprintf(stderr, "lacuna demo: %s: %s\n", what, strerror(errno));
    return 1;
}

static void path_in(const struct demo *demo, const char *name, char *out)
{
    (void)snprintf(out, PATH_BYTES, "%s/%s", demo->folder, name);
}

/* ---- children: this program's other commands, and a browser */

/* Signals do in a child what they do in any program. */
static void reset_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t none;

    for (size_t i = 0; i < LAC_COUNT_OF(signals); i++) {
        (void)signal(signals[i], SIG_DFL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void become(const char *program, char *const *arguments, const char *output,
                             int keep)
{
    int fd = output != NULL ? open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

    if (strcmp(program, SELF) == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    } else {
        (void)setsid(); /* a browser stays, and Ctrl-C is not for it */
    }
    reset_signals();
    if (keep >= 0) {
        (void)fcntl(keep, F_SETFD, 0);
    }
    if (output == NULL || (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0)) {
        (void)execvp(program, arguments);
    }
    _exit(127);
}

/* `output`: a file for its standard output; NULL: ours. `keep`: a descriptor that it gets as it is;
 * -1: none. @return -1 with errno set */
static pid_t start(const char *program, const char *const *words, const char *output, int keep)
{
    char *arguments[ARGUMENTS_MAX] = {NULL};
    pid_t pid;

    for (int i = 0; i < ARGUMENTS_MAX - 1 && words[i] != NULL; i++) {
        memcpy(&arguments[i], &words[i], sizeof(words[i])); /* execvp() leaves them as they are */
    }
    pid = fork();
    if (pid == 0) {
        become(program, arguments, output, keep);
    }
    return pid;
}

/* One that writes into the folder: none starts once the folder is being removed. As start(). */
static bool start_writer(struct demo *demo, volatile pid_t *child, const char *const *words,
                         const char *output, int keep)
{
    (void)pthread_mutex_lock(&demo->lock);
    *child = start(SELF, words, output, keep);
    (void)pthread_mutex_unlock(&demo->lock);
    return *child > 0;
}

/* @return its exit status; 128 and more: a signal; 127: it is not there, or never was */
static int wait_for(pid_t pid)
{
    int status = 0;
    pid_t ended = -1;

    while (pid > 0 && (ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
    return ended <= 0 ? 127 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- the end */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

static void stop_child(volatile pid_t *child)
{
    if (*child > 0) {
        (void)kill(*child, SIGTERM);
        (void)wait_for(*child);
        *child = 0;
    }
}

static void remove_all(void *context)
{
    struct demo *const demo = context;

    (void)pthread_mutex_lock(&demo->lock);
    stop_child(&demo->maker);
    stop_child(&demo->server);
    for (int i = 0; i < REMOVALS_MAX && access(demo->folder, F_OK) == 0; i++) {
        /* again where a child's own child, which ends with it, has just written a file */
        (void)nftw(demo->folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    }
}

/* ---- the traces */

static bool make_folder(struct demo *demo)
{
    const char *const base = getenv("TMPDIR");
    bool is_made;
    int length;

    (void)pthread_mutex_lock(&demo->lock);
    length = snprintf(demo->folder, sizeof(demo->folder), "%s/lacuna-demo-XXXXXX",
                      base != NULL && base[0] == '/' ? base : "/tmp");
    is_made = length > 0 && (size_t)length < sizeof(demo->folder) && mkdtemp(demo->folder) != NULL;
    if (!is_made) {
        demo->folder[0] = '\0'; /* nothing to remove */
    }
    (void)pthread_mutex_unlock(&demo->lock);
    return is_made;
}

static int write_traces(const struct demo *demo, uint64_t seed)
{
    struct lac_error error = {0};
    char series[PATH_BYTES];

    path_in(demo, "series", series);
    if (lac_demo_write_series(series, false, seed, NULL, &error) != LAC_OK) {
        (void)fprintf(stderr, "lacuna demo: %s\n", error.message);
        return 1;
    }
    return 0;
}

static bool start_traces(struct demo *demo, uint64_t seed)
{
    pid_t pid;

    (void)pthread_mutex_lock(&demo->lock);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        reset_signals();
        _exit(write_traces(demo, seed));
    }
    demo->maker = pid;
    (void)pthread_mutex_unlock(&demo->lock);
    return pid > 0;
}

/* @return its exit status, as wait_for() */
static int wait_for_maker(struct demo *demo)
{
    const int exit_status = wait_for(demo->maker);

    demo->maker = 0;
    return exit_status;
}

/* All six into the data folder; what it says of each goes to "imported". */
static bool start_import(struct demo *demo)
{
    char paths[LAC_DEMO_STAGE_COUNT][PATH_BYTES];
    char data[PATH_BYTES];
    char output[PATH_BYTES];
    const char *words[ARGUMENTS_MAX] = {
        "lacuna", "import", "--data", data, "--project", "demo", "--no-keep-originals"};
    int count = 7;

    path_in(demo, "data", data);
    path_in(demo, "imported", output);
    for (int i = 0; i < LAC_DEMO_STAGE_COUNT; i++) {
        (void)snprintf(paths[i], PATH_BYTES, "%s/series/%s.json", demo->folder,
                       lac_demo_stage(i)->name);
        words[count++] = paths[i];
    }
    return start_writer(demo, &demo->maker, words, output, -1);
}

static int print_report(const struct demo *demo)
{
    char path[PATH_BYTES];
    const char *const words[] = {"lacuna", "analyze", path, NULL};

    (void)snprintf(path, sizeof(path), "%s/series/%s.json", demo->folder, lac_demo_stage(0)->name);
    (void)fflush(stdout);
    return wait_for(start(SELF, words, NULL, -1));
}

/* ---- the page */

/* What a file holds, cut at the room there is; "" when it cannot be read. */
static void read_file(const struct demo *demo, const char *name, char *out, size_t capacity)
{
    char path[PATH_BYTES];
    FILE *file;
    size_t length = 0;

    path_in(demo, name, path);
    file = fopen(path, "re");
    if (file != NULL) {
        length = fread(out, 1, capacity - 1, file);
        (void)fclose(file);
    }
    out[length] = '\0';
}

/* Where the first trace is: the server's own address, and the trace's id as the import told it.
 * `said`: two lines, the address and what reaches it from another machine. */
static bool make_address(struct demo *demo, char *said)
{
    char imported[SAID_BYTES];
    char *const remote = strchr(said, '\n');
    char *const end = remote != NULL ? strchr(remote + 1, '\n') : NULL;
    int length;

    if (end == NULL) {
        return false;
    }
    *remote = *end = '\0';
    read_file(demo, "imported", imported, sizeof(imported));
    length = snprintf(demo->address, sizeof(demo->address), "%s/t/%.*s", said,
                      (int)strcspn(imported, " \n"), imported);
    if (length < 0 || (size_t)length >= sizeof(demo->address) ||
        (size_t)(end - remote) > sizeof(demo->remote)) {
        return false;
    }
    memcpy(demo->remote, remote + 1, (size_t)(end - remote));
    read_file(demo, "data/local.token", demo->key, sizeof(demo->key));
    demo->key[strcspn(demo->key, "\n")] = '\0';
    return true;
}

/* All that comes until the other end is closed, a moment that it does not come to at the latest. */
static void read_pipe(int fd, char *out, size_t capacity)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    size_t length = 0;
    ssize_t got = 1;

    while (got > 0 && length < capacity - 1 && poll(&wait, 1, START_S * 1000) > 0) {
        got = read(fd, out + length, capacity - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    out[length] = '\0';
}

static bool start_server(struct demo *demo, const char *listen)
{
    int ends[2] = {-1, -1};
    char data[PATH_BYTES];
    char said[SAID_BYTES];
    char fd[16];
    const char *const words[] = {"lacuna",      "serve", "--data",       data, "--listen", listen,
                                 "--log-level", "error", "--address-fd", fd,   NULL};

    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)complain("cannot make a pipe");
        return false;
    }
    path_in(demo, "data", data);
    (void)snprintf(fd, sizeof(fd), "%d", ends[1]);
    (void)start_writer(demo, &demo->server, words, "/dev/null", ends[1]);
    (void)close(ends[1]);
    read_pipe(ends[0], said, sizeof(said));
    (void)close(ends[0]);
    return make_address(demo, said);
}

/* The key is on the terminal and in files of this user alone, never among the arguments of a
 * program: a page that leads to the address is what the browser is given. */
static void open_browser(const struct demo *demo)
{
    const char *const chosen = getenv("BROWSER");
    char path[PATH_BYTES];
    const char *const words[] = {chosen != NULL && chosen[0] != '\0' ? chosen : "xdg-open", path,
                                 NULL};
    FILE *file;
    int fd;

    path_in(demo, "open.html", path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        return;
    }
    (void)fprintf(file,
                  "<!doctype html><title>Lacuna</title>"
                  "<meta http-equiv=\"refresh\" content=\"0;url=%s#key=%s\">\n",
                  demo->address, demo->key);
    if (fclose(file) == 0) {
        (void)start(words[0], words, "/dev/null", -1);
    }
}

static void print_address(const struct demo *demo)
{
    (void)printf("\nThis was a simulated job. All six traces of its tuning are on the page:\n\n");
    if (isatty(STDOUT_FILENO) != 0) {
        (void)printf("  open     %s#key=%s\n", demo->address, demo->key);
    } else { /* a log that others may read */
        (void)printf("  open     %s#key=...   with the key in %s/data/local.token\n", demo->address,
                     demo->folder);
    }
    (void)printf("  remote   %s\n", demo->remote);
    (void)printf("  stop     Ctrl-C, which also removes %s\n", demo->folder);
    (void)printf("  yours    lacuna run -- python train.py\n");
    (void)fflush(stdout);
}

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
    if (number != SIGCHLD) {
        ended_by = number;
    }
}

/* From here on a signal is the normal end, and comes only while we wait: in `open`. */
static void take_signals(struct lac_ending *ending, sigset_t *open)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < LAC_COUNT_OF(signals); i++) {
        (void)sigaddset(&set, signals[i]);
        (void)sigaction(signals[i], &action, NULL);
    }
    lac_ending_over(ending);
    (void)pthread_sigmask(SIG_BLOCK, &set, open);
}

/* Until the server ends or a signal asks for it. @return the exit status */
static int serve(struct demo *demo, const sigset_t *open)
{
    while (ended_by == 0) {
        if (waitpid(demo->server, NULL, WNOHANG) != 0) {
            demo->server = 0;
            return 1;
        }
        (void)sigsuspend(open);
    }
    return 0;
}

/* ---- all of it */

static int run(struct demo *demo, const struct lac_demo_show *show, struct lac_ending *ending)
{
    const bool on_terminal = isatty(STDERR_FILENO) != 0;
    sigset_t open;
    int exit_status;

    if (on_terminal) {
        (void)fputs("simulating a training job", stderr);
    }
    exit_status = start_traces(demo, show->seed) ? wait_for_maker(demo)
                                                 : complain("cannot start the simulation");
    if (on_terminal) {
        (void)fputs("\r\033[K", stderr);
    }
    if (exit_status == 0 && !start_import(demo)) {
        exit_status = complain("cannot start the import");
    }
    if (exit_status == 0) {
        exit_status = print_report(demo);
    }
    if (exit_status == 0) {
        exit_status = wait_for_maker(demo);
    }
    if (exit_status != 0) {
        return exit_status;
    }
    if (!start_server(demo, show->listen)) {
        return 1;
    }
    take_signals(ending, &open);
    print_address(demo);
    if (show->opens) {
        open_browser(demo);
    }
    return serve(demo, &open);
}

/** What cannot be listened on is said before anything is made for it. */
static bool can_listen(const char *address)
{
    struct lac_error error = {0};
    unsigned port;
    int fd;

    if (lac_http_listen(address, false, &fd, &port, &error) != LAC_OK) {
        (void)fprintf(stderr, "lacuna demo: %s\n", error.message);
        return false;
    }
    (void)close(fd);
    return true;
}

int lac_demo_show(const struct lac_demo_show *show)
{
    struct demo demo = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct lac_ending ending;
    int exit_status;

    if (!can_listen(show->listen)) {
        return 1;
    }
    lac_ending_begin(&ending, remove_all, &demo);
    exit_status =
        make_folder(&demo) ? run(&demo, show, &ending) : complain("cannot make a temporary folder");
    lac_ending_over(&ending);
    remove_all(&demo);
    return exit_status;
}
