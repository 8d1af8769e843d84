#include "server/store/trace/pieces/pieces.h"

#include "analysis/model/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    AHEAD_FIRST = 4, /* pieces asked for at once: a tile is in one or two */
    AHEAD_MAX = 64,  /* when all is read in order, as of a flame graph */
};

struct lac_pieces {
    struct lac_pieces *next;
    char *path;
    unsigned user_count; /**< with `list_lock`; the list is one of them */
    struct lac_pieces_source source;
    pthread_mutex_t lock; /**< guards all below */
    int fd;
    bool is_cut; /**< the source must not be asked any more */
    uint64_t count;
    uint64_t missing_count;
    uint64_t expected; /**< the piece behind the last that was fetched */
    unsigned ahead;
    uint8_t *bytes; /**< AHEAD_MAX pieces */
    struct lac_error error;
    bool has[]; /**< `count` */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lac_pieces *list;

/* -- who knows it --------------------------------------------------------------------------------*/

static void destroy(struct lac_pieces *pieces)
{
    if (pieces->fd >= 0) {
        (void)close(pieces->fd);
    }
    if (pieces->source.done != NULL) {
        pieces->source.done(pieces->source.context);
    }
    (void)pthread_mutex_destroy(&pieces->lock);
    free(pieces->bytes);
    free(pieces->path);
    free(pieces);
}

struct lac_pieces *lac_pieces_find(const char *path)
{
    struct lac_pieces *pieces;

    (void)pthread_mutex_lock(&list_lock);
    pieces = list;
    while (pieces != NULL && strcmp(pieces->path, path) != 0) {
        pieces = pieces->next;
    }
    if (pieces != NULL) {
        pieces->user_count++;
    }
    (void)pthread_mutex_unlock(&list_lock);
    return pieces;
}

void lac_pieces_release(struct lac_pieces *pieces)
{
    bool is_last;

    if (pieces == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&list_lock);
    is_last = --pieces->user_count == 0;
    (void)pthread_mutex_unlock(&list_lock);
    if (is_last) {
        destroy(pieces);
    }
}

void lac_pieces_forget(const char *path)
{
    struct lac_pieces **place = &list;
    struct lac_pieces *pieces;

    (void)pthread_mutex_lock(&list_lock);
    while (*place != NULL && strcmp((*place)->path, path) != 0) {
        place = &(*place)->next;
    }
    pieces = *place;
    if (pieces != NULL) {
        *place = pieces->next;
    }
    (void)pthread_mutex_unlock(&list_lock);
    if (pieces != NULL) {
        (void)pthread_mutex_lock(&pieces->lock);
        pieces->is_cut = true;
        (void)pthread_mutex_unlock(&pieces->lock);
        lac_pieces_release(pieces);
    }
}

/* -- pieces --------------------------------------------------------------------------------------*/

static bool write_all(int fd, const uint8_t *bytes, size_t size_bytes, uint64_t offset)
{
    while (size_bytes > 0) {
        const ssize_t wrote = pwrite(fd, bytes, size_bytes, (off_t)offset);

        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return false;
        }
        bytes += wrote;
        offset += (uint64_t)wrote;
        size_bytes -= (size_t)wrote;
    }
    return true;
}

static enum lac_status cannot_write(const char *path, struct lac_error *reterr)
{
    const int problem = errno;
    const char *const name = strrchr(path, '/');

    errno = problem;
    return lac_fail(reterr, problem == ENOSPC || problem == EDQUOT ? LAC_ERR_NO_SPACE : LAC_ERR_IO,
                    0, "cannot keep a piece of %s: %s", name != NULL ? name + 1 : path,
                    strerror(problem));
}

/** The pieces from `first`, as many as are missing in a row, `least` or more. With the lock. */
static enum lac_status fetch(struct lac_pieces *pieces, uint64_t first, uint64_t least)
{
    const uint64_t offset = first * LAC_PIECE_BYTES;
    uint64_t count = 0;
    uint64_t most;
    uint64_t size;
    enum lac_status status;

    if (pieces->is_cut) {
        return lac_fail(&pieces->error, LAC_ERR_IO, 0, "the trace was changed or deleted");
    }
    pieces->ahead = first != pieces->expected   ? AHEAD_FIRST
                    : pieces->ahead < AHEAD_MAX ? pieces->ahead * 2
                                                : AHEAD_MAX;
    most = least > pieces->ahead ? least : pieces->ahead;
    most = most < AHEAD_MAX ? most : AHEAD_MAX;
    while (count < most && first + count < pieces->count && !pieces->has[first + count]) {
        count++;
    }
    size = count * LAC_PIECE_BYTES;
    size = size < pieces->source.size_bytes - offset ? size : pieces->source.size_bytes - offset;
    if (pieces->bytes == NULL) {
        pieces->bytes = malloc((size_t)AHEAD_MAX * LAC_PIECE_BYTES);
    }
    if (pieces->bytes == NULL) {
        return lac_fail(&pieces->error, LAC_ERR_NOMEM, 0, "out of memory");
    }
    status = pieces->source.read(pieces->source.context, offset, pieces->bytes, (size_t)size,
                                 &pieces->error);
    if (status == LAC_OK && !write_all(pieces->fd, pieces->bytes, (size_t)size, offset)) {
        status = cannot_write(pieces->path, &pieces->error);
    }
    if (status == LAC_OK) {
        memset(pieces->has + first, 1, count);
        pieces->missing_count -= count;
        pieces->expected = first + count;
    }
    if (pieces->missing_count == 0) {
        free(pieces->bytes);
        pieces->bytes = NULL;
    }
    return status;
}

/** With the lock. */
static enum lac_status need(struct lac_pieces *pieces, uint64_t offset, uint64_t size_bytes)
{
    const uint64_t size = pieces->source.size_bytes;
    enum lac_status status = LAC_OK;

    if (size_bytes == 0 || offset >= size || pieces->missing_count == 0) {
        return LAC_OK; /* what lies behind the end is not here, either */
    }
    const uint64_t end = size_bytes < size - offset ? offset + size_bytes : size;
    const uint64_t last = (end - 1) / LAC_PIECE_BYTES;

    for (uint64_t at = offset / LAC_PIECE_BYTES; at <= last && status == LAC_OK; at++) {
        if (!pieces->has[at]) {
            status = fetch(pieces, at, last - at + 1);
        }
    }
    return status;
}

bool lac_pieces_need(struct lac_pieces *pieces, uint64_t offset, uint64_t size_bytes)
{
    enum lac_status status;

    (void)pthread_mutex_lock(&pieces->lock);
    pieces->error.message[0] = '\0';
    status = need(pieces, offset, size_bytes);
    (void)pthread_mutex_unlock(&pieces->lock);
    return status == LAC_OK;
}

void lac_pieces_problem(struct lac_pieces *pieces, char *out, size_t capacity_bytes)
{
    (void)pthread_mutex_lock(&pieces->lock);
    (void)snprintf(out, capacity_bytes, "%s", pieces->error.message);
    (void)pthread_mutex_unlock(&pieces->lock);
}

enum lac_status lac_pieces_complete(const char *path, struct lac_error *reterr)
{
    struct lac_pieces *const pieces = lac_pieces_find(path);
    enum lac_status status;

    if (pieces == NULL) {
        return LAC_OK;
    }
    (void)pthread_mutex_lock(&pieces->lock);
    status = need(pieces, 0, pieces->source.size_bytes);
    if (status != LAC_OK) {
        *reterr = pieces->error;
    }
    (void)pthread_mutex_unlock(&pieces->lock);
    lac_pieces_release(pieces);
    return status;
}

enum lac_status lac_pieces_make(const char *path, const struct lac_pieces_source *source,
                                const void *first, size_t first_bytes, struct lac_error *reterr)
{
    assert(path != NULL && source != NULL && source->size_bytes > 0 &&
           first_bytes <= source->size_bytes &&
           (first_bytes % LAC_PIECE_BYTES == 0 || first_bytes == source->size_bytes));
    const uint64_t count = (source->size_bytes - 1) / LAC_PIECE_BYTES + 1;
    const uint64_t first_count = (first_bytes + LAC_PIECE_BYTES - 1) / LAC_PIECE_BYTES;
    struct lac_pieces *const pieces = calloc(1, sizeof(*pieces) + count * sizeof(pieces->has[0]));
    enum lac_status status = LAC_OK;

    char *const copy = strdup(path);

    if (pieces == NULL || copy == NULL) {
        free(pieces);
        free(copy);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    pieces->path = copy;
    (void)pthread_mutex_init(&pieces->lock, NULL);
    pieces->user_count = 1;
    pieces->count = count;
    pieces->missing_count = count - first_count;
    pieces->expected = first_count;
    pieces->ahead = AHEAD_FIRST / 2;
    memset(pieces->has, 1, first_count);
    pieces->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (pieces->fd < 0 || ftruncate(pieces->fd, (off_t)source->size_bytes) != 0 ||
        !write_all(pieces->fd, first, first_bytes, 0)) {
        status = cannot_write(path, reterr);
        if (pieces->fd >= 0) {
            (void)unlink(path);
        }
        destroy(pieces);
        return status;
    }
    pieces->source = *source;
    (void)pthread_mutex_lock(&list_lock);
    pieces->next = list;
    list = pieces;
    (void)pthread_mutex_unlock(&list_lock);
    return LAC_OK;
}
