/* The whole model, read back from the file. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A loaded model; its strings are the head's. */
struct loaded {
    struct lac_model model;
    uint64_t number_capacity;
    bool is_whole;
    struct lac_cache_entry *pin; /**< what keeps it in the cache: found again when given back */
};

#define LIGHT_COLUMNS (LAC_COLUMNS_TILE | 1U << LAC_COLUMN_LINK)

static const char detail_sql[] =
    "SELECT id, count, data FROM detail WHERE id BETWEEN ? AND ? ORDER BY id";

static void free_loaded(void *data)
{
    struct loaded *loaded = data;
    struct lac_model *model = &loaded->model;

    lac_model_free_columns(model);
    free(loaded);
}

/** Bytes that the model will take; the file says so before anything is allocated. */
static uint64_t needed_bytes(const struct lac_model *head, bool whole)
{
    if (!whole) {
        return head->slices.count * 27;
    }
    return head->slices.count * 43 + head->arg_number_count * 8 + head->sample_count * 16 +
           head->flow_count * sizeof(struct lac_flow) +
           (uint64_t)head->kernel_config_count * sizeof(struct lac_kernel_config) +
           (uint64_t)head->copy_count * sizeof(struct lac_copy) +
           (uint64_t)head->loader_info_count * sizeof(struct lac_loader_info) +
           (uint64_t)head->alloc_count * sizeof(struct lac_alloc);
}

static void *array(uint64_t count, size_t width)
{
    size_t size_bytes;

    /* one entry at least, so that NULL always means failure */
    if (__builtin_mul_overflow(count > 0 ? count : 1, width, &size_bytes)) {
        return NULL;
    }
    return malloc(size_bytes);
}

static enum lac_status allocate_light(struct lac_model *model)
{
    struct lac_slices *slices = &model->slices;
    uint64_t n = slices->count;

    slices->start_ns = array(n, sizeof(*slices->start_ns));
    slices->dur_ns = array(n, sizeof(*slices->dur_ns));
    slices->name = array(n, sizeof(*slices->name));
    slices->link = array(n, sizeof(*slices->link));
    slices->lane = array(n, sizeof(*slices->lane));
    slices->kind = array(n, sizeof(*slices->kind));
    return slices->start_ns != NULL && slices->dur_ns != NULL && slices->name != NULL &&
                   slices->link != NULL && slices->lane != NULL && slices->kind != NULL
               ? LAC_OK
               : LAC_ERR_NOMEM;
}

/** Room for what slices point into; the loader's rows are read, and allocated, apart. */
static enum lac_status allocate_tables(struct lac_model *model)
{
    model->kernel_configs = array(model->kernel_config_count, sizeof(*model->kernel_configs));
    model->copies = array(model->copy_count, sizeof(*model->copies));
    model->allocs = array(model->alloc_count, sizeof(*model->allocs));
    model->sample_ts_ns = array(model->sample_count, sizeof(*model->sample_ts_ns));
    model->sample_value = array(model->sample_count, sizeof(*model->sample_value));
    model->flows = array(model->flow_count, sizeof(*model->flows));
    return model->kernel_configs != NULL && model->copies != NULL && model->allocs != NULL &&
                   model->sample_ts_ns != NULL && model->sample_value != NULL &&
                   model->flows != NULL
               ? LAC_OK
               : LAC_ERR_NOMEM;
}

static enum lac_status allocate_rest(struct lac_model *model)
{
    struct lac_slices *slices = &model->slices;
    uint64_t n = slices->count;

    slices->corr = array(n, sizeof(*slices->corr));
    slices->detail = array(n, sizeof(*slices->detail));
    slices->args = array(n, sizeof(*slices->args));
    slices->arg_num = array(n, sizeof(*slices->arg_num));
    return slices->corr != NULL && slices->detail != NULL && slices->args != NULL &&
                   slices->arg_num != NULL
               ? allocate_tables(model)
               : LAC_ERR_NOMEM;
}

/** Where the columns of the slices from `first` on are to go. */
static struct lac_slices columns_at(const struct lac_slices *all, uint64_t first, bool whole)
{
    struct lac_slices at = {.start_ns = all->start_ns + first,
                            .dur_ns = all->dur_ns + first,
                            .name = all->name + first,
                            .link = all->link + first,
                            .lane = all->lane + first,
                            .kind = all->kind + first};

    if (whole) {
        at.corr = all->corr + first;
        at.detail = all->detail + first;
        at.args = all->args + first;
        at.arg_num = all->arg_num + first;
    }
    return at;
}

static enum lac_status read_chunks(struct lac_trace_file *file, struct loaded *loaded,
                                   struct lac_error *reterr)
{
    struct lac_model *model = &loaded->model;
    unsigned columns = loaded->is_whole ? LAC_COLUMNS_ALL : LIGHT_COLUMNS;
    struct lac_chunk_codec *codec = lac_cache_take_codec(file->cache);
    enum lac_status status = codec != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (uint32_t c = 0; c < file->chunk_count && status == LAC_OK; c++) {
        const struct lac_chunk_entry *chunk = &file->chunks[c];
        struct lac_chunk_out out = {
            .at = columns_at(&model->slices, chunk->first, loaded->is_whole),
            .strings = &file->head.strings,
            .numbers = &model->arg_numbers,
            .number_count = &model->arg_number_count,
            .number_capacity = &loaded->number_capacity,
        };
        uint8_t *bytes = NULL;
        size_t size_bytes = 0;

        status = lac_trace_read_blob(file, chunk->blob, &bytes, &size_bytes, reterr);
        if (status == LAC_OK) {
            status = lac_chunk_decode(codec, bytes, size_bytes, chunk->count, chunk->first, columns,
                                      &out, reterr);
        }
        if (status == LAC_OK && !lac_trace_chunk_is_sane(file, chunk, &out.at, columns)) {
            status = lac_trace_corrupt(file, reterr, "a chunk");
        }
        free(bytes);
    }
    lac_cache_give_codec(file->cache, codec);
    return status;
}

enum lac_status lac_trace_read_blocks(struct lac_trace_file *file,
                                      const struct lac_block_table *table, void *target,
                                      struct lac_error *reterr)
{
    const uint32_t column_count = table->column_count;
    const int64_t base = table->base;
    const uint64_t total = table->total;
    int64_t *storage = malloc(sizeof(int64_t) * column_count * (size_t)LAC_COLUMN_BLOCK_ROWS);
    int64_t *columns[LAC_COLUMN_BLOCK_COLUMNS] = {NULL};
    sqlite3_stmt *get = NULL;
    uint64_t seen = 0;
    enum lac_status status = LAC_ERR_NOMEM;

    (void)pthread_mutex_lock(&file->db_lock);
    if (storage != NULL) {
        for (uint32_t c = 0; c < column_count; c++) {
            columns[c] = storage + (size_t)c * LAC_COLUMN_BLOCK_ROWS;
        }
        status = lac_sql_prepare(file->db, table->sql, &get, reterr);
    }
    if (status == LAC_OK && sqlite3_bind_parameter_count(get) == 2) {
        lac_sql_bind_i64(get, 1, base);
        lac_sql_bind_i64(get, 2, base + UINT32_MAX);
    }
    while (status == LAC_OK) {
        struct lac_block block;

        status = lac_sql_step_row(get, "trace file", reterr);
        if (status != LAC_OK) {
            break;
        }
        block = (struct lac_block){.first = sqlite3_column_int64(get, 0) - base,
                                   .count = (uint32_t)sqlite3_column_int64(get, 1),
                                   .data = sqlite3_column_blob(get, 2),
                                   .size_bytes = (size_t)sqlite3_column_bytes(get, 2)};
        if (block.first != (int64_t)seen || block.count < 1 ||
            block.count > LAC_COLUMN_BLOCK_ROWS || block.count > total - seen) {
            status = LAC_ERR_CORRUPT;
            break;
        }
        status =
            lac_columns_decode(block.data, block.size_bytes, column_count, block.count, columns);
        if (status == LAC_OK) {
            status = table->reader(target, &block, columns);
            seen += block.count;
        }
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    free(storage);
    if (status == LAC_ERR_NOT_FOUND) {
        status = seen == total ? LAC_OK : LAC_ERR_CORRUPT;
    }
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "a table") : status;
}

/** Launch configurations and copies need the file: its version says what they hold. */
struct configs {
    const struct lac_trace_file *file;
    struct lac_model *model;
};

static enum lac_status read_kernel_configs(void *target, const struct lac_block *block,
                                           int64_t *const *columns)
{
    const struct configs *configs = target;
    const uint32_t column_count = lac_kernel_column_count(configs->file);

    for (uint32_t i = 0; i < block->count; i++) {
        int64_t values[LAC_KERNEL_COLUMNS_MAX] = {0};

        for (unsigned c = 0; c < column_count; c++) {
            values[c] = columns[c][i];
        }
        lac_kernel_config_from(configs->file, values,
                               &configs->model->kernel_configs[block->first + i]);
    }
    return LAC_OK;
}

static enum lac_status read_copies(void *target, const struct lac_block *block,
                                   int64_t *const *columns)
{
    const struct configs *configs = target;
    const uint32_t column_count = lac_copy_column_count(configs->file);

    for (uint32_t i = 0; i < block->count; i++) {
        int64_t values[LAC_COPY_COLUMNS_MAX] = {0};

        for (unsigned c = 0; c < column_count; c++) {
            values[c] = columns[c][i];
        }
        lac_copy_from(configs->file, values, &configs->model->copies[block->first + i]);
    }
    return LAC_OK;
}

static enum lac_status read_loaders(void *target, const struct lac_block *block,
                                    int64_t *const *columns)
{
    struct lac_model *model = target;

    for (uint32_t i = 0; i < block->count; i++) {
        model->loader_infos[block->first + i] = (struct lac_loader_info){
            .batch = columns[0][i], .cpu_ns = columns[1][i], .worker = (int32_t)columns[2][i]};
    }
    return LAC_OK;
}

static enum lac_status read_allocs(void *target, const struct lac_block *block,
                                   int64_t *const *columns)
{
    struct lac_model *model = target;

    for (uint32_t i = 0; i < block->count; i++) {
        model->allocs[block->first + i] = (struct lac_alloc){
            .bytes = columns[0][i], .total_allocated = columns[1][i], .device = columns[2][i]};
    }
    return LAC_OK;
}

static enum lac_status read_samples(void *target, const struct lac_block *block,
                                    int64_t *const *columns)
{
    struct lac_model *model = target;

    memcpy(model->sample_ts_ns + block->first, columns[0], block->count * sizeof(int64_t));
    memcpy(model->sample_value + block->first, columns[1], block->count * sizeof(double));
    return LAC_OK;
}

static enum lac_status read_flows(void *target, const struct lac_block *block,
                                  int64_t *const *columns)
{
    struct lac_model *model = target;

    for (uint32_t i = 0; i < block->count; i++) {
        model->flows[block->first + i] = (struct lac_flow){.src = (uint32_t)columns[0][i],
                                                           .dst = (uint32_t)columns[1][i],
                                                           .name = (uint32_t)columns[2][i]};
    }
    return LAC_OK;
}

enum lac_status lac_trace_read_loader_infos(struct lac_trace_file *file, struct lac_model *model,
                                            struct lac_error *reterr)
{
    const struct lac_block_table table = {detail_sql, (int64_t)LAC_DETAIL_LOADER << 48,
                                          model->loader_info_count, 3, read_loaders};

    model->loader_infos = array(model->loader_info_count, sizeof(*model->loader_infos));
    return model->loader_infos != NULL ? lac_trace_read_blocks(file, &table, model, reterr)
                                       : LAC_ERR_NOMEM;
}

static enum lac_status read_tables(struct lac_trace_file *file, struct lac_model *model,
                                   struct lac_error *reterr)
{
    const struct lac_block_table kernels = {detail_sql, (int64_t)LAC_DETAIL_KERNEL_CONFIG << 48,
                                            model->kernel_config_count,
                                            lac_kernel_column_count(file), read_kernel_configs};
    const struct lac_block_table tables[] = {
        {detail_sql, (int64_t)LAC_DETAIL_ALLOC << 48, model->alloc_count, 3, read_allocs},
        {"SELECT id, count, data FROM sample ORDER BY id", 0, model->sample_count, 2, read_samples},
        {"SELECT first, count, data FROM flow ORDER BY first", 0, model->flow_count, 3, read_flows},
    };
    const struct lac_block_table copies = {detail_sql, (int64_t)LAC_DETAIL_COPY << 48,
                                           model->copy_count, lac_copy_column_count(file),
                                           read_copies};
    struct configs configs = {file, model};
    enum lac_status status = lac_trace_read_loader_infos(file, model, reterr);

    if (status == LAC_OK) {
        status = lac_trace_read_blocks(file, &kernels, &configs, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_blocks(file, &copies, &configs, reterr);
    }
    for (size_t t = 0; t < LAC_COUNT_OF(tables) && status == LAC_OK; t++) {
        status = lac_trace_read_blocks(file, &tables[t], model, reterr);
    }
    return status;
}

void lac_trace_forget_tables(struct lac_model *model)
{
    model->kernel_config_count = 0;
    model->copy_count = 0;
    model->loader_info_count = 0;
    model->alloc_count = 0;
    model->sample_count = 0;
    model->flow_count = 0;
}

static enum lac_status fill(struct lac_trace_file *file, struct loaded *loaded,
                            struct lac_error *reterr)
{
    struct lac_model *model = &loaded->model;
    enum lac_status status = allocate_light(model);

    model->arg_number_count = 0; /* counted again: in the order of the chunks */
    if (!loaded->is_whole) {
        lac_trace_forget_tables(model);
        return status == LAC_OK ? read_chunks(file, loaded, reterr) : status;
    }
    if (status == LAC_OK) {
        status = allocate_rest(model);
    }
    if (status == LAC_OK) {
        status = read_chunks(file, loaded, reterr);
    }
    if (status == LAC_OK) {
        status = read_tables(file, model, reterr);
    }
    /* what exports rely on; a damaged file must not lead them astray */
    if (status == LAC_OK && !lac_model_is_valid(model)) {
        status = lac_trace_corrupt(file, reterr, "it contradicts itself");
    }
    return status;
}

/** With lazy_lock held: two threads that want the same model must not both build it. */
static enum lac_status load(struct lac_trace_file *file, const struct lac_cache_key *key,
                            struct lac_cache_entry **ret_entry, struct lac_error *reterr)
{
    struct loaded *loaded = calloc(1, sizeof(*loaded));
    enum lac_status status;

    if (loaded == NULL) {
        return LAC_ERR_NOMEM;
    }
    loaded->is_whole = key->type != 0;
    loaded->model = file->head;
    status = fill(file, loaded, reterr);
    if (status != LAC_OK) {
        free_loaded(loaded);
        return status;
    }
    *ret_entry = lac_cache_put(file->model_cache, key, loaded,
                               needed_bytes(&file->head, loaded->is_whole), free_loaded);
    if (*ret_entry == NULL) {
        return LAC_ERR_NOMEM;
    }
    loaded->pin = *ret_entry;
    return LAC_OK;
}

static enum lac_status get_model(struct lac_trace_file *file, bool whole,
                                 const struct lac_model **ret_model, struct lac_error *reterr)
{
    const struct lac_cache_key key = {.owner = file->owner, .type = whole ? 1 : 0};
    struct lac_cache_entry *entry = lac_cache_get(file->model_cache, &key);
    uint64_t bytes = needed_bytes(&file->head, whole);
    const struct loaded *loaded;
    enum lac_status status = LAC_OK;

    if (entry == NULL && bytes > lac_cache_max_bytes(file->model_cache)) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        "the trace takes %llu MiB in memory, more than the model cache of %llu MiB "
                        "(--model-cache)",
                        (unsigned long long)(bytes >> 20),
                        (unsigned long long)(lac_cache_max_bytes(file->model_cache) >> 20));
    }
    if (entry == NULL) {
        (void)pthread_mutex_lock(&file->lazy_lock);
        entry = lac_cache_get(file->model_cache, &key);
        if (entry == NULL) {
            status = load(file, &key, &entry, reterr);
        }
        (void)pthread_mutex_unlock(&file->lazy_lock);
    }
    if (status != LAC_OK) {
        return status;
    }
    loaded = lac_cache_data(entry);
    *ret_model = &loaded->model;
    return LAC_OK;
}

bool lac_trace_model_is_loaded(struct lac_trace_file *file)
{
    const struct lac_cache_key key = {.owner = file->owner, .type = 0};
    struct lac_cache_entry *entry = lac_cache_get(file->model_cache, &key);

    lac_cache_unpin(file->model_cache, entry);
    return entry != NULL;
}

bool lac_trace_model_fits(const struct lac_trace_file *file)
{
    return needed_bytes(&file->head, false) <= lac_cache_max_bytes(file->model_cache);
}

enum lac_status lac_trace_file_model(struct lac_trace_file *file,
                                     const struct lac_model **ret_model, struct lac_error *reterr)
{
    return get_model(file, false, ret_model, reterr);
}

enum lac_status lac_trace_file_whole_model(struct lac_trace_file *file,
                                           const struct lac_model **ret_model,
                                           struct lac_error *reterr)
{
    return get_model(file, true, ret_model, reterr);
}

void lac_trace_file_release_model(struct lac_trace_file *file, const struct lac_model *model)
{
    if (model != NULL) {
        const struct loaded *loaded = (const struct loaded *)model;

        _Static_assert(offsetof(struct loaded, model) == 0, "a model is found in its struct");
        lac_cache_unpin(file->model_cache, loaded->pin);
    }
}

/* ---- what slices point into ---- */

enum lac_status lac_trace_file_details(struct lac_trace_file *file, struct lac_model **ret_details,
                                       struct lac_error *reterr)
{
    struct lac_model *model = malloc(sizeof(*model));
    enum lac_status status = LAC_ERR_NOMEM;

    if (model != NULL) {
        *model = file->head;
        model->slices = (struct lac_slices){.count = file->head.slices.count};
        model->arg_number_count = 0;
        status = allocate_tables(model);
    }
    if (status == LAC_OK) {
        status = read_tables(file, model, reterr);
    }
    if (status != LAC_OK) {
        lac_trace_details_destroy(model);
        return status;
    }
    *ret_details = model;
    return LAC_OK;
}

void lac_trace_details_destroy(struct lac_model *details)
{
    if (details != NULL) {
        lac_model_free_columns(details);
        free(details);
    }
}

/* ---- what others make of a trace ---- */

enum lac_status lac_trace_file_kept(struct lac_trace_file *file, const struct lac_trace_kept *kept,
                                    struct lac_cache_entry **ret_entry, struct lac_error *reterr)
{
    const struct lac_cache_key key = {.owner = file->owner, .type = 2};
    struct lac_cache_entry *entry = lac_cache_get(file->model_cache, &key);
    uint64_t size_bytes = 0;
    void *made = NULL;

    if (entry == NULL) {
        enum lac_status status = kept->make(file, &made, &size_bytes, reterr);

        if (status != LAC_OK) {
            return status;
        }
        entry = lac_cache_put(file->model_cache, &key, made, size_bytes, kept->done);
    }
    *ret_entry = entry;
    return entry != NULL ? LAC_OK : LAC_ERR_NOMEM;
}

void lac_trace_file_release_kept(struct lac_trace_file *file, struct lac_cache_entry *entry)
{
    lac_cache_unpin(file->model_cache, entry);
}
