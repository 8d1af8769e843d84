/* Programs that a launcher or a recorder may trip over: `strange_jobs NAME FILE` does one thing
 * that jobs do rarely, with ranges in it, and prints what came of it. */
#include "collector/base/count_of.h"
#include "kernels/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 64, RANGES = 500, DEEP = 100000, NAME_BYTES = 1 << 20, FORKS = 60 };

static void work(int count)
{
    for (int i = 0; i < count; i++) {
        range_push("work");
        range_pop();
    }
}

static void *in_thread(void *context)
{
    work(RANGES);
    return context;
}

static int threads(size_t stack_bytes)
{
    pthread_t all[THREADS];
    pthread_attr_t attributes;
    int made = 0;

    (void)pthread_attr_init(&attributes);
    if (stack_bytes != 0) {
        (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    }
    for (int i = 0; i < THREADS; i++) {
        made += pthread_create(&all[i], &attributes, in_thread, NULL) == 0;
    }
    for (int i = 0; i < made; i++) {
        (void)pthread_join(all[i], NULL);
    }
    return made;
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static volatile sig_atomic_t caught;
static sigjmp_buf back;

static void on_signal(int signal)
{
    (void)signal;
    caught++;
}

static void on_signal_with_range(int signal)
{
    (void)signal;
    work(1);
    caught++;
}

static void on_fault(int signal)
{
    siglongjmp(back, signal);
}

/* ---- the programs: each returns the exit status */

static int many_threads(const char *file)
{
    (void)file;
    (void)printf("%d threads\n", threads(0));
    return 0;
}

static int small_stacks(const char *file)
{
    (void)file;
    (void)printf("%d threads\n", threads(PTHREAD_STACK_MIN));
    return 0;
}

static int closed_files(const char *file)
{
    work(10);
    for (int fd = 3; fd < 2048; fd++) {
        (void)close(fd);
    }
    (void)printf("the next is %d\n", open(file, O_RDWR | O_CREAT, 0600));
    work(60000);
    return 4;
}

static int vforks(const char *file)
{
    (void)file;
    volatile int done = 0;

    for (volatile int i = 0; i < FORKS; i++) {
        pid_t pid;

        range_push("vfork");
        pid = vfork();
        if (pid == 0) {
            (void)execlp("true", "true", (char *)NULL);
            _exit(99);
        }
        range_pop();
        done += pid > 0 && wait_for(pid) == 0;
    }
    (void)printf("%d\n", done);
    return 0;
}

static int forks(const char *file)
{
    (void)file;
    int sum = 0;

    for (int i = 0; i < FORKS; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            work(20);
            _exit(i);
        }
        sum += pid > 0 ? wait_for(pid) : 0;
    }
    (void)printf("%d\n", sum);
    return 0;
}

static int another_root(const char *file)
{
    (void)file;
    work(10);
    (void)printf("chroot %d\n", chroot("."));
    work(60000);
    return 5;
}

static int another_user(const char *file)
{
    (void)file;
    work(10);
    (void)printf("setuid %d, %d\n", setuid(65534), (int)getuid());
    work(60000);
    return 6;
}

static int another_namespace(const char *file)
{
    (void)file;
    const int made = unshare(CLONE_NEWPID);
    const pid_t pid = fork();

    if (pid == 0) {
        work(100);
        (void)printf("made %d, %s\n", made, getpid() == 1 ? "the first" : "one of many");
        (void)fflush(stdout);
        _exit(7);
    }
    return wait_for(pid);
}

static int own_group(const char *file)
{
    (void)file;
    pid_t pid;

    (void)setpgid(0, 0);
    (void)signal(SIGUSR1, on_signal);
    pid = fork();
    if (pid == 0) {
        (void)killpg(0, SIGUSR1);
        _exit(caught);
    }
    (void)printf("child %d, ", wait_for(pid));
    (void)printf("parent %d\n", (int)caught);
    return 0;
}

static int in_the_background(const char *file)
{
    work(10);
    if (daemon(1, 1) == 0) {
        const int fd = open(file, O_WRONLY | O_CREAT, 0600);

        work(1000);
        (void)dprintf(fd, "done, in a session of its own: %d\n", getsid(0) != getpgid(getppid()));
    }
    return 0;
}

static int long_names(const char *file)
{
    (void)file;
    char *const name = malloc(NAME_BYTES + 1);

    if (name == NULL) {
        return 1;
    }
    for (int i = 0; i < 20; i++) {
        memset(name, 'a' + i, NAME_BYTES);
        name[NAME_BYTES] = '\0';
        range_push(name);
        range_pop();
    }
    free(name);
    (void)puts("long");
    return 0;
}

static int very_deep(const char *file)
{
    (void)file;
    for (int i = 0; i < DEEP; i++) {
        range_push("deeper");
    }
    for (int i = 0; i < DEEP; i++) {
        range_pop();
    }
    (void)puts("deep");
    return 0;
}

static int deleted_spool(const char *file)
{
    const char *const folder = getenv("LACUNA_SPOOL");
    char command[4200];

    (void)file;
    work(100);
    (void)snprintf(command, sizeof(command), "rm -rf '%.4000s'",
                   folder != NULL ? folder : "/nonexistent");
    (void)printf("rm %d\n", system(command));
    work(60000);
    return 8;
}

static int new_programs(const char *file)
{
    char left[16];
    const char *const before = getenv("STRANGE_LEFT");
    const int count = before != NULL ? (int)strtol(before, NULL, 10) : 15;

    work(10);
    if (count > 0) {
        (void)snprintf(left, sizeof(left), "%d", count - 1);
        (void)setenv("STRANGE_LEFT", left, 1);
        (void)execl("/proc/self/exe", "strange", "new_programs", file, (char *)NULL);
    }
    (void)printf("%d left\n", count);
    return 0;
}

static int timers(const char *file)
{
    const struct itimerval often = {{0, 500}, {0, 500}};

    (void)file;
    (void)signal(SIGALRM, on_signal_with_range);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    while (caught < 500) {
        work(50);
    }
    (void)puts("500 alarms");
    return 0;
}

static int faults(const char *file)
{
    (void)file;
    volatile int seen = 0;

    (void)signal(SIGSEGV, on_fault);
    for (volatile int i = 0; i < 50; i++) {
        void *const page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        range_push("fault");
        if (sigsetjmp(back, 1) == 0) {
            *(volatile int *)page = 1;
        } else {
            seen++;
        }
        range_pop();
        (void)munmap(page, 4096);
    }
    (void)printf("%d faults\n", seen);
    return 0;
}

static int broken_off(const char *file)
{
    (void)file;
    const struct rlimit none = {0};

    (void)setrlimit(RLIMIT_CORE, &none);
    range_push("open");
    abort();
}

static int left_open(const char *file)
{
    (void)file;
    range_push("open");
    _exit(9);
}

static int little_space(const char *file)
{
    (void)file;
    const struct rlimit some = {300000, 300000};
    const struct rlimit memory = {64 << 20, 64 << 20};

    (void)setrlimit(RLIMIT_FSIZE, &some);
    (void)setrlimit(RLIMIT_AS, &memory);
    work(60000);
    (void)puts("little");
    return 10;
}

static int no_folder(const char *file)
{
    (void)file;
    const int made = mkdir("gone", 0700);
    const int entered = chdir("gone");
    const int removed = rmdir("../gone");

    (void)printf("%d %d %d\n", made, entered, removed);
    work(100);
    return 0;
}

static int stops(const char *file)
{
    (void)file;
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        (void)raise(SIGSTOP);
        work(100);
        _exit(11);
    }
    (void)waitpid(pid, &status, WUNTRACED);
    (void)printf("stopped %d\n", WIFSTOPPED(status));
    (void)kill(pid, SIGCONT);
    return wait_for(pid);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const char *file);
    } all[] = {
        {"many_threads", many_threads},
        {"small_stacks", small_stacks},
        {"closed_files", closed_files},
        {"vforks", vforks},
        {"forks", forks},
        {"another_root", another_root},
        {"another_user", another_user},
        {"another_namespace", another_namespace},
        {"own_group", own_group},
        {"in_the_background", in_the_background},
        {"long_names", long_names},
        {"very_deep", very_deep},
        {"deleted_spool", deleted_spool},
        {"new_programs", new_programs},
        {"timers", timers},
        {"faults", faults},
        {"broken_off", broken_off},
        {"left_open", left_open},
        {"little_space", little_space},
        {"no_folder", no_folder},
        {"stops", stops},
    };

    if (argc < 2) { /* which there are */
        for (size_t i = 0; i < LAC_COUNT_OF(all); i++) {
            (void)puts(all[i].name);
        }
        return 0;
    }
    range_open_library();
    for (size_t i = 0; i < LAC_COUNT_OF(all); i++) {
        if (strcmp(argv[1], all[i].name) == 0) {
            return all[i].run(argc > 2 ? argv[2] : "/dev/null");
        }
    }
    return 2;
}
