/*
 * A rank's table as bytes, so that the ranks of a run can be compared without their models.
 * Little endian, described in server/store/FORMAT.md; columns of collectives one after another,
 * which compress well. What is read may be anybody's bytes: every number is bounded as the
 * comparison needs it.
 */

#include "analysis/diagnose/ranks/ranks_private.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 2,
    TEXT_BYTES_MAX = 1 << 20,
    PCT_MAX = 1000,
    COLLECTIVE_BYTES = 16 + 4 * LAC_RANK_PART_COUNT
};

/* -- writing -------------------------------------------------------------------------------- */

/** Counts only while `at` is NULL. */
struct packer {
    uint8_t *at;
    size_t used;
};

static void put(struct packer *packer, uint64_t value, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes && packer->at != NULL; i++) {
        packer->at[packer->used + i] = (uint8_t)(value >> (8 * i));
    }
    packer->used += size_bytes;
}

static void put_i64(struct packer *packer, int64_t value)
{
    put(packer, (uint64_t)value, 8);
}

static void put_f64(struct packer *packer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put(packer, bits, 8);
}

static void put_f32(struct packer *packer, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put(packer, bits, 4);
}

/** One that is longer than a reader takes is cut. */
static void put_text(struct packer *packer, const char *text)
{
    size_t length = strnlen(text, TEXT_BYTES_MAX);
    put(packer, length, 4);
    if (packer->at != NULL) {
        memcpy(packer->at + packer->used, text, length);
    }
    packer->used += length;
}

static void put_facts(struct packer *packer, const struct lac_rank_table *table)
{
    put_text(packer, table->name);
    put_text(packer, table->host);
    put_text(packer, table->device);
    put_text(packer, table->cause);
    put(packer, (uint8_t)table->letter, 1);
    put(packer, table->has_device, 1);
    put(packer, table->gap_cause, 1);
    put_i64(packer, table->rank);
    put_i64(packer, table->world_size);
    put(packer, table->step_count, 4);
    put(packer, table->step_kept_count, 4);
    put_i64(packer, table->step_mean_ns);
    put_i64(packer, table->need_ns);
    put_i64(packer, table->host_ns);
    put_f64(packer, table->idle_pct);
    put_f64(packer, table->exposed_comm_pct);
    put_i64(packer, table->device_id);
    put_i64(packer, table->first_ns);
    put_i64(packer, table->lead_ns);
    put_i64(packer, table->span_ns);
    put_i64(packer, table->idle_ns);
    put_i64(packer, table->gap_at_ns);
    put_i64(packer, table->gap_ns);
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        put_i64(packer, table->partition_ns[part]);
    }
}

static void put_table(struct packer *packer, const struct lac_rank_table *table)
{
    put(packer, VERSION, 4);
    put_facts(packer, table);
    put(packer, table->kernel_count, 8);
    put(packer, table->kernel_kept_count, 4);
    for (uint32_t k = 0; k < table->kernel_kept_count; k++) {
        put(packer, table->kernels[k].name_hash, 8);
        put(packer, table->kernels[k].count, 8);
        put_i64(packer, table->kernels[k].total_ns);
    }
    put(packer, table->count, 8);
    put(packer, table->row_count, 4);
    uint64_t first = UINT64_MAX;
    for (uint32_t row = 0; row < table->row_count; row++) {
        put_text(packer, table->rows[row].name);
        put(packer, table->rows[row].first, 8);
        put(packer, table->rows[row].count, 8);
        put(packer, table->rows[row].kind, 1);
    }
    int64_t before_ns = 0;
    for (uint64_t i = 0; i < table->count; i++) {
        put_i64(packer, table->at[i].start_ns - before_ns);
        before_ns = table->at[i].start_ns;
        first = table->at[i].is_first ? i : first;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        put_i64(packer, table->at[i].end_ns - table->at[i].start_ns);
    }
    for (int part = 0; part < LAC_RANK_PART_COUNT; part++) {
        for (uint64_t i = 0; i < table->count; i++) {
            put_f32(packer, table->at[i].part_ns[part]);
        }
    }
    put(packer, first, 8);
}

enum lac_status lac_rank_table_pack(const struct lac_rank_table *table, uint8_t **ret_bytes,
                                    size_t *ret_size_bytes)
{
    assert(table != NULL && ret_bytes != NULL && ret_size_bytes != NULL);
    struct packer packer = {0};
    put_table(&packer, table);
    packer.at = malloc(packer.used);
    if (packer.at == NULL) {
        return LAC_ERR_NOMEM;
    }
    packer.used = 0;
    put_table(&packer, table);
    *ret_bytes = packer.at;
    *ret_size_bytes = packer.used;
    return LAC_OK;
}

/* -- reading -------------------------------------------------------------------------------- */

/** After the first failure everything is 0, and `status` says so. */
struct unpacker {
    const uint8_t *at;
    size_t left;
    enum lac_status status;
};

static void refuse(struct unpacker *unpacker)
{
    unpacker->status = unpacker->status ? unpacker->status : LAC_ERR_CORRUPT;
    unpacker->left = 0;
}

static uint64_t get(struct unpacker *unpacker, size_t size_bytes)
{
    uint64_t value = 0;
    if (unpacker->left < size_bytes) {
        refuse(unpacker);
        return 0;
    }
    for (size_t i = 0; i < size_bytes; i++) {
        value |= (uint64_t)unpacker->at[i] << (8 * i);
    }
    unpacker->at += size_bytes;
    unpacker->left -= size_bytes;
    return value;
}

static uint64_t get_upto(struct unpacker *unpacker, size_t size_bytes, uint64_t most)
{
    uint64_t value = get(unpacker, size_bytes);
    if (value > most) {
        refuse(unpacker);
        return 0;
    }
    return value;
}

static int64_t get_i64(struct unpacker *unpacker, int64_t least, int64_t most)
{
    int64_t value = (int64_t)get(unpacker, 8);
    if (unpacker->status || value < least || value > most) {
        refuse(unpacker);
        return 0;
    }
    return value;
}

static int64_t get_ns(struct unpacker *unpacker)
{
    return get_i64(unpacker, 0, LAC_TIME_MAX_NS);
}

/** A time, or LAC_UNKNOWN_NS. */
static int64_t get_known_ns(struct unpacker *unpacker)
{
    int64_t value = (int64_t)get(unpacker, 8);
    if (value != LAC_UNKNOWN_NS && (value < 0 || value > LAC_TIME_MAX_NS)) {
        refuse(unpacker);
    }
    return unpacker->status ? 0 : value;
}

/** A percentage, or NaN. */
static double get_pct(struct unpacker *unpacker)
{
    uint64_t bits = get(unpacker, 8);
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (!isnan(value) && !(value >= -PCT_MAX && value <= PCT_MAX)) {
        refuse(unpacker);
    }
    return unpacker->status ? 0.0 : value;
}

static float get_part(struct unpacker *unpacker)
{
    uint32_t bits = (uint32_t)get(unpacker, 4);
    float value;
    memcpy(&value, &bits, sizeof(value));
    if (!(value >= 0.0F && value <= 2.0F * (float)LAC_TIME_MAX_NS)) {
        refuse(unpacker);
    }
    return unpacker->status ? 0.0F : value;
}

/** NULL when refused. The caller frees. */
static char *get_text(struct unpacker *unpacker)
{
    size_t length = (size_t)get_upto(unpacker, 4, TEXT_BYTES_MAX);
    char *text = NULL;
    if (!unpacker->status && length <= unpacker->left &&
        memchr(unpacker->at, '\0', length) == NULL) {
        text = strndup((const char *)unpacker->at, length);
        unpacker->status = text != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (text == NULL) {
        refuse(unpacker);
        return NULL;
    }
    unpacker->at += length;
    unpacker->left -= length;
    return text;
}

static void get_facts(struct unpacker *unpacker, struct lac_rank_table *table)
{
    table->name = get_text(unpacker);
    table->host = get_text(unpacker);
    table->device = get_text(unpacker);
    char *cause = get_text(unpacker);
    if (cause != NULL && strlen(cause) < sizeof(table->cause)) {
        memcpy(table->cause, cause, strlen(cause) + 1);
    } else {
        refuse(unpacker);
    }
    free(cause);
    table->letter = (char)get_upto(unpacker, 1, '~');
    table->has_device = get_upto(unpacker, 1, 1) != 0;
    table->gap_cause = (uint8_t)get_upto(unpacker, 1, LAC_CAUSE_COUNT_ - 1);
    table->rank = (int32_t)get_i64(unpacker, -1, INT32_MAX);
    table->world_size = (int32_t)get_i64(unpacker, -1, INT32_MAX);
    table->step_count = (uint32_t)get(unpacker, 4);
    table->step_kept_count = (uint32_t)get_upto(unpacker, 4, table->step_count);
    table->step_mean_ns = get_known_ns(unpacker);
    table->need_ns = get_ns(unpacker);
    table->host_ns = get_known_ns(unpacker);
    table->idle_pct = get_pct(unpacker);
    table->exposed_comm_pct = get_pct(unpacker);
    table->device_id = get_i64(unpacker, INT64_MIN, INT64_MAX);
    table->first_ns = get_ns(unpacker);
    table->lead_ns = get_ns(unpacker);
    table->span_ns = get_ns(unpacker);
    table->idle_ns = get_ns(unpacker);
    table->gap_at_ns = get_ns(unpacker);
    table->gap_ns = get_ns(unpacker);
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        table->partition_ns[part] = get_ns(unpacker);
    }
}

static void get_kernels(struct unpacker *unpacker, struct lac_rank_table *table)
{
    table->kernel_count = get_upto(unpacker, 8, LAC_SLICE_COUNT_MAX);
    table->kernel_kept_count = (uint32_t)get_upto(unpacker, 4, LAC_RANK_KERNELS_MAX);
    for (uint32_t k = 0; k < table->kernel_kept_count; k++) {
        table->kernels[k].name_hash = get(unpacker, 8);
        table->kernels[k].count = get_upto(unpacker, 8, LAC_SLICE_COUNT_MAX);
        table->kernels[k].total_ns = get_ns(unpacker);
    }
}

/** Rows by name, each with collectives of its own. */
static void get_rows(struct unpacker *unpacker, struct lac_rank_table *table)
{
    uint64_t covered = 0;
    table->count = get_upto(unpacker, 8, unpacker->left / COLLECTIVE_BYTES);
    uint32_t rows = (uint32_t)get_upto(unpacker, 4, table->count);
    table->rows = calloc((size_t)rows + 1, sizeof(*table->rows));
    table->at = calloc((size_t)table->count + 1, sizeof(*table->at));
    if (table->rows == NULL || table->at == NULL) {
        unpacker->status = LAC_ERR_NOMEM;
        return;
    }
    table->capacity = table->count;
    for (uint32_t r = 0; r < rows && !unpacker->status; r++) {
        struct lac_collective_row *row = &table->rows[r];
        row->name = get_text(unpacker);
        if (row->name == NULL) {
            break;
        }
        table->row_count++;
        row->first = get_upto(unpacker, 8, table->count);
        row->count = get_upto(unpacker, 8, table->count - row->first);
        row->kind = (uint8_t)get_upto(unpacker, 1, LAC_COLLECTIVE_KIND_COUNT_ - 1);
        covered += row->count;
        if (row->count == 0 || (r > 0 && strcmp(table->rows[r - 1].name, row->name) >= 0)) {
            refuse(unpacker);
        }
        for (uint64_t i = row->first; i < row->first + row->count && !unpacker->status; i++) {
            if (table->at[i].name != 0) { /* of two rows */
                refuse(unpacker);
            }
            table->at[i].name = r + 1;
        }
    }
    if (covered != table->count) {
        refuse(unpacker);
    }
}

static void get_collectives(struct unpacker *unpacker, struct lac_rank_table *table)
{
    int64_t start_ns = 0;
    for (uint64_t i = 0; i < table->count && !unpacker->status; i++) {
        bool has_before = i > 0 && table->at[i - 1].name == table->at[i].name;
        start_ns += get_i64(unpacker, has_before ? 0 : -LAC_TIME_MAX_NS, LAC_TIME_MAX_NS);
        table->at[i].start_ns = start_ns;
        if (start_ns < 0 || start_ns > LAC_TIME_MAX_NS) {
            refuse(unpacker);
        }
    }
    int64_t total_ns = 0; /* the comparison adds them up, of all ranks */
    for (uint64_t i = 0; i < table->count && !unpacker->status; i++) {
        int64_t dur_ns = get_i64(unpacker, 0, LAC_TIME_MAX_NS - total_ns);
        total_ns += dur_ns;
        table->at[i].end_ns = table->at[i].start_ns + dur_ns;
    }
    for (int part = 0; part < LAC_RANK_PART_COUNT; part++) {
        for (uint64_t i = 0; i < table->count && !unpacker->status; i++) {
            table->at[i].part_ns[part] = get_part(unpacker);
        }
    }
    uint64_t first = get(unpacker, 8);
    if (first < table->count) {
        table->at[first].is_first = true;
    } else if (first != UINT64_MAX) {
        refuse(unpacker);
    }
}

enum lac_status lac_rank_table_unpack(const uint8_t *bytes, size_t size_bytes,
                                      struct lac_rank_table **ret_table)
{
    assert(ret_table != NULL);
    assert(bytes != NULL || size_bytes == 0);
    struct unpacker unpacker = {.at = bytes, .left = size_bytes};
    struct lac_rank_table *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (get(&unpacker, 4) != VERSION) {
        refuse(&unpacker);
    }
    get_facts(&unpacker, table);
    get_kernels(&unpacker, table);
    if (!unpacker.status) {
        get_rows(&unpacker, table);
    }
    if (!unpacker.status) {
        get_collectives(&unpacker, table);
    }
    if (unpacker.left > 0) {
        refuse(&unpacker);
    }
    if (unpacker.status) {
        lac_rank_table_destroy(table);
        return unpacker.status;
    }
    *ret_table = table;
    return LAC_OK;
}
