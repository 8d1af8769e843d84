#include "tests/support/recorded_job.h"

#include "analysis/import/spool/spool_import.h"
#include "tests/support/check_marks.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[PATH_MAX];
static struct lac_model *imported;

void lac_job_setup(void)
{
    (void)snprintf(folder, sizeof(folder), "%s/lacuna-spool-XXXXXX",
                   getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    imported = NULL;
}

void lac_job_setup_alone(void)
{
    (void)unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET);
    lac_job_setup();
}

void lac_job_teardown(void)
{
    DIR *const directory = opendir(folder);
    char path[PATH_MAX + 300];

    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(directory);
    (void)rmdir(folder);
    lac_model_destroy(imported);
}

/** In a job's own process. */
static bool is_job;

/** Asked by LeakSanitizer before it looks, where there is one. A job ends with threads of the library
 *  under way, as it shall, and the search crashes in one that is just ending (signal 11 in its
 *  tracer), which says nothing of the job. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_job;
}

int lac_job_run(void (*body)(void))
{
    int status = 0;
    const pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        is_job = true;
        (void)setenv("LACUNA_SPOOL", folder, 1);
        (void)setenv("LACUNA_SPOOL_SEGMENT", "65536", 1);
        body();
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

const char *lac_job_file(const char *name)
{
    static char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    size_t used;

    ck_assert_int_gt(length, 0);
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    *strrchr(path, '/') = '\0';
    used = strlen(path);
    (void)snprintf(path + used, sizeof(path) - used, "/%s", name);
    return path;
}

const char *lac_job_folder(void)
{
    return folder;
}

int lac_job_spool_count(void)
{
    DIR *const directory = opendir(folder);
    int count = 0;

    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        count += strstr(entry->d_name, ".spool") != NULL;
    }
    (void)closedir(directory);
    return count;
}

static enum lac_status keep_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    imported = model;
    return LAC_OK;
}

struct lac_model *lac_job_import(struct lac_error *reterr)
{
    const struct lac_import_options options = {0};

    lac_model_destroy(imported);
    imported = NULL;
    return lac_spool_import(folder, &options, keep_model, NULL, reterr) == LAC_OK ? imported : NULL;
}
