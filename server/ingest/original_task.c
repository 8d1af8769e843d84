/* The original is hashed and kept by one core while another imports it. */

#include "analysis/model/status.h"
#include "server/ingest/original.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* Neither hash nor zstd keep anything big on it; a process with a limit of addresses pays for it. */
enum { STACK_BYTES = 256 << 10 };

struct lac_original_task {
    struct lac_original_options options;
    lac_original_enter enter;
    void *context;
    pthread_t thread;
    bool has_thread;
    uint64_t size_bytes;
    enum lac_status status;
    struct lac_error error;
    atomic_bool is_done; /**< with status LAC_OK */
};

static void read_it(struct lac_original_task *task)
{
    task->status = lac_original_read(&task->options, &task->size_bytes, &task->error);
    atomic_store_explicit(&task->is_done, task->status == LAC_OK, memory_order_release);
}

static void *run(void *context)
{
    struct lac_original_task *task = context;

    if (task->enter == NULL || task->enter(task->context)) {
        read_it(task);
    } else {
        task->status = lac_fail(&task->error, LAC_ERR_IO, 0,
                                "cannot keep the original: its thread "
                                "could not be limited");
    }
    return NULL;
}

static bool start(struct lac_original_task *task)
{
    pthread_attr_t attributes;
    bool good = pthread_attr_init(&attributes) == 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    good = good && pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
#endif
    good = good && pthread_create(&task->thread, &attributes, run, task) == 0;
    (void)pthread_attr_destroy(&attributes);
    return good;
}

enum lac_status lac_original_task_begin(const struct lac_original_options *options,
                                        lac_original_enter enter, void *context,
                                        struct lac_original_task **ret_task,
                                        struct lac_error *reterr)
{
    assert(options != NULL && ret_task != NULL);
    struct lac_original_task *task = calloc(1, sizeof(*task));

    if (task == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    task->options = *options;
    task->enter = enter;
    task->context = context;
    task->has_thread = start(task);
    if (!task->has_thread && enter == NULL) {
        read_it(task);
    }
    *ret_task = task;
    return LAC_OK;
}

bool lac_original_task_is_done(const struct lac_original_task *task)
{
    return atomic_load_explicit(&task->is_done, memory_order_acquire);
}

enum lac_status lac_original_task_end(struct lac_original_task *task, uint64_t *ret_size_bytes,
                                      struct lac_error *reterr)
{
    enum lac_status status;

    if (task == NULL) {
        return LAC_OK;
    }
    if (task->has_thread) {
        (void)pthread_join(task->thread, NULL);
    } else if (task->enter != NULL) {
        read_it(task);
    }
    status = task->status;
    if (status != LAC_OK && reterr != NULL) {
        *reterr = task->error;
    }
    *ret_size_bytes = task->size_bytes;
    free(task);
    return status;
}
