/* What an importing process may do once it is shut in: each check enters in a child of its own. */

#include "collector/base/count_of.h"
#include "server/ingest/sandbox.h"
#include "tests/support/check_main.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char token[128];
static int listener_port;
static int listener = -1;

static void setup(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char path[128];
    FILE *file;

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-sandbox-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(token, sizeof(token), "%s/local.token", folder);
    file = fopen(token, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("the key", file);
    (void)fclose(file);
    (void)snprintf(path, sizeof(path), "%s/work", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/upload", folder);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("bytes", file);
    (void)fclose(file);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    listener_port = ntohs(address.sin_port);
}

static void teardown(void)
{
    char command[128];

    (void)close(listener);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* -- what is tried; each returns whether it could be done ---------------------------------------*/

static bool opens(const char *path, int flags)
{
    return open(path, flags | O_CLOEXEC, 0600) >= 0;
}

static bool read_token(void)
{
    return opens(token, O_RDONLY);
}

static bool read_token_by_way_of_the_folder(void)
{
    return openat(4, "../local.token", O_RDONLY | O_CLOEXEC) >= 0;
}

static bool read_passwords(void)
{
    return opens("/etc/passwd", O_RDONLY);
}

static bool list_the_data_folder(void)
{
    return opens(folder, O_RDONLY | O_DIRECTORY);
}

static bool write_the_input(void)
{
    return opens("/proc/self/fd/3", O_WRONLY);
}

static bool make_a_file_outside(void)
{
    return openat(4, "../new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}

static bool remove_the_token(void)
{
    return unlink(token) == 0;
}

static bool make_a_link_to_the_token(void)
{
    return symlinkat(token, 4, "link") == 0 || linkat(AT_FDCWD, token, 4, "hard", 0) == 0;
}

static bool connect_by_tcp(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)listener_port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

static bool make_a_local_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool execute(void)
{
    char *const arguments[] = {(char[]){"true"}, NULL};

    (void)execv("/bin/true", arguments); /* that would end as 0, which means: could */
    return false;
}

static bool make_a_process(void)
{
    const pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }
    return child > 0;
}

static void *nothing(void *context)
{
    return context;
}

static bool make_a_thread(void)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, nothing, NULL) == 0;
}

static bool trace_its_parent(void)
{
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0;
}

static bool signal_its_parent(void)
{
    return kill(getppid(), 0) == 0;
}

static bool limit_its_parent(void)
{
    const struct rlimit none = {0};

    return syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, &none, NULL) == 0;
}

static bool map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

static bool become_another(void)
{
    return setuid(12345) == 0;
}

static const struct {
    const char *name;
    bool (*could)(void);
    bool needs_landlock;
} refused[] = {
    {"read the key", read_token, true},
    {"read the key by way of the folder", read_token_by_way_of_the_folder, true},
    {"read /etc/passwd", read_passwords, true},
    {"list the data folder", list_the_data_folder, true},
    {"write the input", write_the_input, true},
    {"make a file outside", make_a_file_outside, true},
    {"remove the key", remove_the_token, true},
    {"make a link to the key", make_a_link_to_the_token, false},
    {"connect by TCP", connect_by_tcp, false},
    {"make a local socket", make_a_local_socket, false},
    {"execute", execute, false},
    {"make a process", make_a_process, false},
    {"make a thread", make_a_thread, false},
    {"trace its parent", trace_its_parent, false},
    {"signal its parent", signal_its_parent, false},
    {"limit its parent", limit_its_parent, false},
    {"map code", map_code, false},
    {"become another", become_another, false},
};
enum { REFUSED_COUNT = LAC_COUNT_OF(refused) };

/** What an import does. @return NULL, or what was refused */
static const char *work(void)
{
    char bytes[8] = "";
    char name[] = "spools-XXXXXX";
    struct stat info;
    struct rlimit limit;
    void *memory;
    int fd = open("/proc/self/fd/3", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, bytes, sizeof(bytes)) != 5 || stat("/proc/self/fd/3", &info) != 0) {
        return "reading the input";
    }
    if (openat(4, "trace-0.db", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644) < 0 ||
        (fd = openat(4, "trace-0.db", O_RDWR | O_CLOEXEC)) < 0 || write(fd, "x", 1) != 1 ||
        ftruncate(fd, 10) != 0 || fsync(fd) != 0) {
        return "writing a file";
    }
    if (mkdtemp(name) == NULL || rmdir(name) != 0 || unlink("trace-0.db") != 0) {
        return "a folder of its own";
    }
    memory = malloc((size_t)64 << 20);
    if (memory == NULL || getrlimit(RLIMIT_AS, &limit) != 0) {
        return "memory";
    }
    memset(memory, 1, (size_t)64 << 20);
    free(memory);
    return NULL;
}

/** In a child, as an import is started: 3 the input, 4 the folder, working in that. */
static void enter(struct lac_sandbox *sandbox)
{
    char path[128];
    int input;
    int output;

    (void)snprintf(path, sizeof(path), "%s/upload", folder);
    input = open(path, O_RDONLY);
    (void)snprintf(path, sizeof(path), "%s/work", folder);
    output = open(path, O_RDONLY | O_DIRECTORY);
    input = fcntl(input, F_DUPFD, 20);
    output = fcntl(output, F_DUPFD, 20);
    if (dup2(input, 3) != 3 || dup2(output, 4) != 4 || fchdir(4) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        _exit(9);
    }
    *sandbox = lac_sandbox_enter(3, 4);
}

static int status_of(pid_t child)
{
    int status = 0;

    ck_assert_int_ge(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(what_an_import_does_not_need_is_refused)
{
    struct lac_sandbox held = lac_sandbox_probe();
    pid_t child;
    int status;

    if (!held.has_seccomp || (refused[_i].needs_landlock && held.landlock_version == 0)) {
        if (_i == 0) {
            (void)printf("skip: this kernel or build has no Landlock or seccomp\n");
        }
        return;
    }
    child = fork();
    if (child == 0) {
        struct lac_sandbox sandbox;

        enter(&sandbox);
        _exit(refused[_i].could() ? 0 : 7);
    }
    status = status_of(child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 7, "could %s (status %d)",
                  refused[_i].name, status);
}
END_TEST

START_TEST(what_an_import_needs_is_allowed)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        struct lac_sandbox sandbox;
        const char *trouble;

        enter(&sandbox);
        trouble = work();
        if (trouble != NULL) {
            (void)fprintf(stderr, "refused: %s (%d)\n", trouble, errno);
        }
        exit(trouble == NULL ? 0 : 1);
    }
    status = status_of(child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}
END_TEST

/** A thread that was there before: it enters by itself, and then tries what is refused. */
static void *enter_late(void *context)
{
    static bool is_in;
    struct lac_sandbox sandbox;

    (void)pthread_mutex_lock(context); /* until the first thread is in */
    (void)pthread_mutex_unlock(context);
    enter(&sandbox);
    is_in = (sandbox.landlock_version == 0 || !read_token()) &&
            (!sandbox.has_seccomp || !make_a_local_socket());
    return &is_in;
}

START_TEST(a_thread_that_was_there_enters_by_itself)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
        struct lac_sandbox sandbox;
        pthread_t thread;
        void *is_in = NULL;

        (void)pthread_mutex_lock(&gate);
        if (pthread_create(&thread, NULL, enter_late, &gate) != 0) {
            _exit(2);
        }
        enter(&sandbox);
        (void)pthread_mutex_unlock(&gate);
        (void)pthread_join(thread, &is_in);
        _exit(is_in != NULL && *(bool *)is_in ? 0 : 1);
    }
    ck_assert_int_gt(child, 0);
    status = status_of(child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(an_abort_is_seen_as_one)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        struct lac_sandbox sandbox;

        (void)signal(SIGABRT, SIG_DFL);
        enter(&sandbox);
        abort();
    }
    status = status_of(child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}
END_TEST

START_TEST(what_is_in_force_is_said)
{
    struct lac_sandbox sandbox = {.landlock_version = 6, .has_seccomp = true};
    char text[64];

    lac_sandbox_describe(&sandbox, text, sizeof(text));
    ck_assert_str_eq(text, "Landlock 6 and seccomp");
    sandbox.has_seccomp = false;
    lac_sandbox_describe(&sandbox, text, sizeof(text));
    ck_assert_str_eq(text, "Landlock 6");
    sandbox.landlock_version = 0;
    lac_sandbox_describe(&sandbox, text, sizeof(text));
    ck_assert_str_eq(text, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox");
    TCase *tcase = tcase_create("an importing process");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, what_an_import_does_not_need_is_refused, 0, REFUSED_COUNT);
    tcase_add_test(tcase, what_an_import_needs_is_allowed);
    tcase_add_test(tcase, a_thread_that_was_there_enters_by_itself);
    tcase_add_test(tcase, an_abort_is_seen_as_one);
    tcase_add_test(tcase, what_is_in_force_is_said);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
