#include "analysis/import/spool/spool_import.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_profiler.h"
#include "analysis/import/spool/spool_ranks.h"
#include "analysis/import/spool/spool_read.h"
#include "analysis/import/spool/spool_space.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSES_MAX = 65536, PROFILES_MAX = 4096, RANKS_MAX = 1024, NOTE_BYTES = 16384 };

/* What belongs to no rank is read for each of them: at most so much beyond the input itself. */
static const uint64_t SHARED_FREE_BYTES = (uint64_t)4 << 30;
static const uint64_t SHARED_RATIO = 64;

/* Where a file lies: in a folder, or in a space. */
struct place {
    char *path;      /* NULL: in the space */
    uint32_t number; /* there */
};

struct spool_file {
    struct place place;
    struct lac_spool_info info;
    uint64_t size_bytes;
};

struct spool_files {
    const char *path; /* of them all, as given */
    const struct lac_spool_space *space;
    struct lac_source_budget *budget; /* NULL: each file has its own */
    struct spool_file *files;
    size_t count;
    size_t capacity;
    uint64_t unreadable;
    struct lac_error last_error;
    struct lac_spool_ranks ranks; /* of the files in order of age */
    struct place *profiles;       /* what another profiler wrote */
    size_t profile_count;
    bool is_cut_off; /* its launcher was killed, or still records */
};

static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool open_place(const struct spool_files *files, const struct place *place,
                       struct lac_spool_bytes *ret_spool)
{
    *ret_spool = (struct lac_spool_bytes){.space = files->space, .number = place->number, .fd = -1};
    if (place->path != NULL) {
        ret_spool->space = NULL;
        ret_spool->fd = open_file(place->path);
    }
    return ret_spool->space != NULL || ret_spool->fd >= 0;
}

static void close_place(const struct lac_spool_bytes *spool)
{
    if (spool->fd >= 0) {
        (void)close(spool->fd);
    }
}

bool lac_spool_is_recording(const char *path)
{
    assert(path != NULL);
    char magic[8] = {0};
    struct stat status;
    bool is_recording = false;
    const int fd = open_file(path);

    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) == 0) {
        is_recording =
            S_ISDIR(status.st_mode) ||
            (S_ISREG(status.st_mode) && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
             memcmp(magic, LAC_SPOOL_MAGIC, sizeof(magic)) == 0);
    }
    (void)close(fd);
    return is_recording;
}

static void files_done(struct spool_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->files[i].place.path);
    }
    free(files->files);
    lac_spool_ranks_done(&files->ranks);
    for (size_t i = 0; i < files->profile_count; i++) {
        free(files->profiles[i].path);
    }
    free(files->profiles);
}

/* JSON, or packed: what a job's own profiler wrote, laid next to the spools. */
static bool is_profile(const struct lac_spool_bytes *spool)
{
    uint8_t head[2] = {0};

    return lac_spool_bytes_read(spool, head, sizeof(head), 0) == (int64_t)sizeof(head) &&
           (head[0] == '{' || head[0] == '[' || (head[0] == 0x1f && head[1] == 0x8b));
}

/* Takes the place's path. */
static enum lac_status add_profile(struct spool_files *files, struct place place)
{
    struct place *const grown =
        files->profile_count < PROFILES_MAX
            ? realloc(files->profiles, (files->profile_count + 1) * sizeof(*grown))
            : NULL;

    if (grown == NULL) {
        free(place.path);
        files->unreadable++;
        return LAC_OK;
    }
    files->profiles = grown;
    files->profiles[files->profile_count++] = place;
    return LAC_OK;
}

/* Takes the place's path. A file that is no readable spool is counted, not fatal. */
static enum lac_status add_file(struct spool_files *files, struct place place)
{
    struct spool_file file = {.place = place};
    struct lac_spool_bytes spool;
    enum lac_status status = LAC_ERR_IO;

    if (open_place(files, &place, &spool)) {
        if (is_profile(&spool)) {
            close_place(&spool);
            return add_profile(files, place);
        }
        const int64_t size_bytes = lac_spool_bytes_size(&spool);

        file.size_bytes = size_bytes > 0 ? (uint64_t)size_bytes : 0;
        status = lac_spool_read_info(&spool, &file.info, &files->last_error);
        close_place(&spool);
    } else {
        (void)lac_fail(&files->last_error, LAC_ERR_IO, 0, "cannot open %s", place.path);
    }
    if (status != LAC_OK) {
        free(place.path);
        files->unreadable++;
        return status == LAC_ERR_NOMEM ? status : LAC_OK;
    }
    if (!LAC_RESERVE(files->files, files->capacity, files->count, 1)) {
        free(place.path);
        return LAC_ERR_NOMEM;
    }
    files->files[files->count++] = file;
    return LAC_OK;
}

/* Parents before children, so that the main process comes first; then by pid. */
static int by_age(const void *left, const void *right)
{
    const struct spool_file *const a = left;
    const struct spool_file *const b = right;

    const int order = LAC_ORDER(a->info.fork_depth, b->info.fork_depth);
    return order != 0 ? order : LAC_ORDER(a->info.pid, b->info.pid);
}

/* Whether the launcher's note says that it recorded to the end. */
static bool is_note_of_end(const char *folder)
{
    char *path = NULL;
    char text[NOTE_BYTES];
    ssize_t length = -1;
    int fd = -1;

    if (asprintf(&path, "%s/%s", folder, LAC_SPOOL_NOTE) >= 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        free(path);
    }
    if (fd >= 0) {
        length = read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, "\n" LAC_SPOOL_NOTE_ENDED) != NULL;
}

static enum lac_status list_folder(const char *path, struct spool_files *files,
                                   struct lac_error *reterr)
{
    DIR *const folder = opendir(path);
    enum lac_status status = LAC_OK;

    if (folder == NULL) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot open the folder %s", path);
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && status == LAC_OK;
         entry = readdir(folder)) {
        char *full = NULL;

        const bool is_theirs =
            strncmp(entry->d_name, LAC_SPOOL_PROFILER, strlen(LAC_SPOOL_PROFILER)) == 0;

        if (strcmp(entry->d_name, LAC_SPOOL_NOTE) == 0) {
            files->is_cut_off = !is_note_of_end(path);
        }
        if (!is_theirs && !lac_spool_is_name(entry->d_name)) {
            continue;
        }
        if (files->count >= PROCESSES_MAX) {
            status = lac_fail(reterr, LAC_ERR_LIMIT, 0, "more than %d spools in %s", PROCESSES_MAX,
                              path);
        } else if (asprintf(&full, "%s/%s", path, entry->d_name) < 0) {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "list of spools");
        } else {
            status = add_file(files, (struct place){.path = full});
        }
    }
    (void)closedir(folder);
    return status;
}

/* ---- ranks of one job that one launcher recorded, as under torchrun: a model each */

/* Of files that belong to no rank, as samples of the host, every rank has its part. */
static bool is_part_of(const struct spool_files *files, size_t file, uint32_t rank)
{
    return rank == LAC_SPOOL_NO_RANK || files->ranks.of_file[file] == rank ||
           files->ranks.of_file[file] == LAC_SPOOL_NO_RANK;
}

static enum lac_status find_ranks(struct spool_files *files)
{
    struct lac_spool_info **const infos = calloc(files->count + 1, sizeof(*infos));
    enum lac_status status = LAC_ERR_NOMEM;

    for (size_t i = 0; i < files->count && infos != NULL; i++) {
        infos[i] = &files->files[i].info;
    }
    if (infos != NULL) {
        status = lac_spool_ranks_find(infos, files->count, &files->ranks);
    }
    free(infos);
    return status;
}

/* Launchers' spools first, for what they tell of the host. */
static enum lac_status read_hosts(struct spool_files *files, struct lac_builder *builder,
                                  struct lac_spool_settings *settings, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < files->count && status == LAC_OK; i++) {
        struct lac_spool_bytes spool;

        if (strcmp(files->files[i].info.comm, LAC_SPOOL_LAUNCHER) == 0 &&
            open_place(files, &files->files[i].place, &spool)) {
            status = lac_spool_read_host(&spool, builder, settings, reterr);
            close_place(&spool);
            /* what cannot be read is counted when all of it is read */
            status = status == LAC_ERR_NOMEM ? status : LAC_OK;
        }
    }
    return status;
}

/* What the recording as a whole says, as a setting "key=value". */
static enum lac_status note(struct lac_model *model, struct lac_spool_settings *settings,
                            const char *text)
{
    uint32_t id;
    const enum lac_status status = lac_spool_intern(&model->strings, text, strlen(text), &id);

    if (status == LAC_OK) {
        lac_spool_settings_add(settings, &model->strings, id);
    }
    return status;
}

static enum lac_status read_all(struct spool_files *files, uint32_t rank,
                                struct lac_builder *builder,
                                const struct lac_import_options *options, struct lac_error *reterr)
{
    struct lac_model *const model = lac_builder_model(builder);
    const int64_t offset_ns = files->files[0].info.realtime_offset_ns;
    struct lac_spool_settings settings = {0};
    bool hides_gpus = false; /* from a process of the job */
    enum lac_status status = read_hosts(files, builder, &settings, reterr);

    model->info.rank = -1;
    model->info.world_size = -1;
    for (size_t i = 0; i < files->count && status == LAC_OK; i++) {
        const struct spool_file *const file = &files->files[i];
        struct lac_spool_bytes spool;

        if (!is_part_of(files, i, rank)) {
            continue;
        }
        if (memcmp(file->info.boot_id, files->files[0].info.boot_id, sizeof(file->info.boot_id)) !=
            0) {
            lac_model_report(
                model, LAC_REPORT_INFO, "other_host", 1, 0,
                "a spool of another host or boot: its clock cannot be compared exactly");
        }
        if (!open_place(files, &file->place, &spool)) {
            files->unreadable++;
            continue;
        }
        status = lac_spool_read(&spool, builder, offset_ns, &settings, reterr);
        close_place(&spool);
        hides_gpus = hides_gpus ||
                     (file->info.hides_gpus && strcmp(file->info.comm, LAC_SPOOL_LAUNCHER) != 0);
        if (status == LAC_ERR_CORRUPT || status == LAC_ERR_IO) {
            files->unreadable++;
            status = LAC_OK;
        }
        if (model->info.rank < 0 &&
            (rank == LAC_SPOOL_NO_RANK || files->ranks.of_file[i] == rank)) {
            model->info.rank = file->info.rank;
            model->info.world_size = file->info.world_size;
        }
        if (options->progress != NULL &&
            !options->progress(options->progress_context, i + 1, files->count,
                               model->info.event_count)) {
            return lac_fail(reterr, LAC_ERR_IO, 0, "canceled");
        }
    }
    if (files->unreadable > 0) {
        lac_model_report(model, LAC_REPORT_DROPPED, "spool_unreadable", files->unreadable, 0,
                         files->last_error.message);
    }
    if (status == LAC_OK && files->is_cut_off) {
        status = note(model, &settings, "recording_cut_off=True");
    }
    if (status == LAC_OK && hides_gpus) {
        status = note(model, &settings, "gpus_hidden=True");
    }
    return status != LAC_OK ? status : lac_spool_settings_store(&settings, model);
}

/* "rank 1"; of several jobs in one recording "rank 1 of 2", of such of the same size with the
 * number of the job. */
static void describe_rank(const struct spool_files *files, uint32_t rank, char *out,
                          size_t capacity)
{
    const struct lac_spool_rank *const own = &files->ranks.at[rank];
    const struct lac_spool_rank *const last = &files->ranks.at[files->ranks.count - 1];

    if (own->group != 0) {
        (void)snprintf(out, capacity, "rank %d of %d, job %u", (int)own->rank, (int)own->world_size,
                       own->group);
    } else if (files->ranks.at[0].world_size != last->world_size) {
        (void)snprintf(out, capacity, "rank %d of %d", (int)own->rank, (int)own->world_size);
    } else {
        (void)snprintf(out, capacity, "rank %d", (int)own->rank);
    }
}

/* "DIR/resnet.lacuna/" -> "resnet": the last part of the path, without its ending. */
static enum lac_status set_name(struct lac_model *model, const struct spool_files *files,
                                const char *name, uint32_t rank)
{
    const char *begin = name != NULL ? name : files->path;
    size_t length = strlen(begin);
    enum lac_status status;
    char *full = NULL;
    char words[64];

    if (name == NULL) {
        while (length > 1 && begin[length - 1] == '/') {
            length--;
        }
        for (size_t i = length; i > 0; i--) {
            if (begin[i - 1] == '/') {
                begin += i;
                length -= i;
                break;
            }
        }
    }
    if (rank == LAC_SPOOL_NO_RANK) {
        return lac_spool_intern(&model->strings, begin, length, &model->info.name);
    }
    describe_rank(files, rank, words, sizeof(words));
    if (asprintf(&full, "%.*s %s", (int)(length < 4096 ? length : 4096), begin, words) < 0) {
        return LAC_ERR_NOMEM;
    }
    status = lac_spool_intern(&model->strings, full, strlen(full), &model->info.name);
    free(full);
    return status;
}

static int64_t read_spool_at(const void *context, void *out, size_t size_bytes, uint64_t offset)
{
    return lac_spool_bytes_read(context, out, size_bytes, offset);
}

static enum lac_status join_profile(struct spool_files *files, const struct place *place,
                                    const struct lac_import_options *options,
                                    struct lac_builder *builder, struct lac_error *reterr)
{
    struct lac_source_budget own = {.expanded_bytes_max = options->limits.expanded_bytes_max,
                                    .expansion_ratio_max = options->limits.expansion_ratio_max};
    struct lac_spool_bytes spool;
    struct lac_source *source = NULL;
    enum lac_status status;

    if (!open_place(files, place, &spool)) {
        files->unreadable++;
        return LAC_OK;
    }
    const int64_t size_bytes = lac_spool_bytes_size(&spool);

    own.input_bytes_total = size_bytes > 0 ? (uint64_t)size_bytes : 0;
    status = lac_source_open_reader(read_spool_at, &spool,
                                    files->budget != NULL ? files->budget : &own, &source, reterr);
    if (status == LAC_OK) {
        status =
            lac_spool_profiler_join(source, options, files->files[0].info.made_ns, builder, reterr);
    }
    lac_source_destroy(source);
    close_place(&spool);
    return status;
}

/* What the files of one rank, or all, say. */
static enum lac_status fill(struct spool_files *files, uint32_t rank,
                            const struct lac_import_options *options, struct lac_builder *builder,
                            struct lac_error *reterr)
{
    struct lac_model *const model = lac_builder_model(builder);
    enum lac_status status;
    size_t first = 0;

    while (!is_part_of(files, first, rank)) { /* every rank has a file */
        first++;
    }
    const char *const host = files->files[first].info.host;

    model->info.format = LAC_FORMAT_LACUNA;
    status = set_name(model, files, options->name, rank);
    if (status == LAC_OK) {
        status = lac_spool_intern(&model->strings, host, strlen(host), &model->info.host);
    }
    if (status == LAC_OK) {
        status = read_all(files, rank, builder, options, reterr);
    }
    /* what a job's own profiler wrote does not say of which rank */
    for (size_t i = 0; i < files->profile_count && status == LAC_OK && rank == LAC_SPOOL_NO_RANK;
         i++) {
        status = join_profile(files, &files->profiles[i], options, builder, reterr);
    }
    return status;
}

/* The files of one rank, or all, as one model. */
static enum lac_status import_rank(struct spool_files *files, uint32_t rank,
                                   const struct lac_import_options *options, lac_import_sink sink,
                                   void *context, struct lac_error *reterr)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    enum lac_status status = lac_builder_create(&builder);

    if (status != LAC_OK) {
        return lac_fail(reterr, status, 0, "model");
    }
    lac_builder_use_crew(builder, options->crew);
    lac_builder_demangle(builder); /* CUPTI has the compiler's names */
    status = fill(files, rank, options, builder, reterr);
    if (status == LAC_OK) {
        status = lac_builder_finish(builder, 0, &model);
    }
    if (status != LAC_OK) {
        lac_builder_destroy(builder);
        return status == LAC_ERR_NOMEM ? lac_fail(reterr, status, 0, "model") : status;
    }
    return sink(context, model, reterr);
}

/* Each rank has its part of a few small spools, as samples of the host; hostile files have many. */
static enum lac_status check_shared(const struct spool_files *files, struct lac_error *reterr)
{
    const struct lac_spool_ranks *const ranks = &files->ranks;
    uint64_t all_bytes = 0;
    uint64_t shared_bytes = 0;

    for (size_t i = 0; i < files->count; i++) {
        const struct spool_file *const file = &files->files[i];

        all_bytes += file->size_bytes;
        shared_bytes += ranks->of_file[i] == LAC_SPOOL_NO_RANK ? file->size_bytes : 0;
    }
    if (ranks->count > 0 &&
        shared_bytes > (SHARED_FREE_BYTES + SHARED_RATIO * all_bytes) / ranks->count) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        "%zu ranks share spools of %llu bytes that belong to none of them: import "
                        "the ranks one by one",
                        ranks->count, (unsigned long long)shared_bytes);
    }
    return LAC_OK;
}

static enum lac_status import_files(struct spool_files *files,
                                    const struct lac_import_options *options, lac_import_sink sink,
                                    void *context, struct lac_error *reterr)
{
    const struct lac_spool_ranks *const ranks = &files->ranks;
    enum lac_status status;

    if (files->files == NULL) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no spool in %s", files->path);
    }
    qsort(files->files, files->count, sizeof(*files->files), by_age);
    status = find_ranks(files);
    if (status != LAC_OK) {
        return lac_fail(reterr, status, 0, "ranks");
    }
    if (ranks->count > RANKS_MAX) {
        status =
            lac_fail(reterr, LAC_ERR_LIMIT, 0, "more than %d ranks in %s", RANKS_MAX, files->path);
    }
    if (status == LAC_OK) {
        status = check_shared(files, reterr);
    }
    if (ranks->count == 0 && status == LAC_OK) {
        status = import_rank(files, LAC_SPOOL_NO_RANK, options, sink, context, reterr);
    }
    for (uint32_t i = 0; i < ranks->count && status == LAC_OK; i++) {
        status = import_rank(files, i, options, sink, context, reterr);
    }
    return status;
}

/* `files` are listed, as far as `status` says: import and free them. */
static enum lac_status import_listed(struct spool_files *files, enum lac_status status,
                                     const struct lac_import_options *options, lac_import_sink sink,
                                     void *context, struct lac_error *reterr)
{
    if (status == LAC_OK && files->count == 0) {
        status = files->unreadable == 0
                     ? lac_fail(reterr, LAC_ERR_NOT_FOUND, 0,
                                "no spool in %s: was anything recorded there?", files->path)
                     : lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s", files->last_error.message);
    }
    if (status == LAC_OK) {
        status = import_files(files, options, sink, context, reterr);
    }
    files_done(files);
    return status == LAC_ERR_NOMEM && reterr->message[0] == '\0'
               ? lac_fail(reterr, status, 0, "list of spools")
               : status;
}

enum lac_status lac_spool_import(const char *path, const struct lac_import_options *options,
                                 lac_import_sink sink, void *context, struct lac_error *reterr)
{
    struct spool_files files = {.path = path};
    struct stat file;
    enum lac_status status;

    if (stat(path, &file) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot open %s", path);
    }
    if (S_ISDIR(file.st_mode)) {
        status = list_folder(path, &files, reterr);
    } else {
        char *const copy = strdup(path);

        status = copy != NULL ? add_file(&files, (struct place){.path = copy})
                              : lac_fail(reterr, LAC_ERR_NOMEM, 0, "path");
    }
    return import_listed(&files, status, options, sink, context, reterr);
}

enum lac_status lac_spool_import_space(const struct lac_spool_space *space,
                                       struct lac_source_budget *budget,
                                       const struct lac_import_options *options,
                                       lac_import_sink sink, void *context,
                                       struct lac_error *reterr)
{
    struct spool_files files = {.path = options->name, .space = space, .budget = budget};
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < lac_spool_space_count(space) && status == LAC_OK; i++) {
        status = add_file(&files, (struct place){.number = i});
    }
    return import_listed(&files, status, options, sink, context, reterr);
}
