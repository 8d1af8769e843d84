/* Search: which names match, which chunks hold them, then the earliest (or the longest) slices of
 * those chunks. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEARCH_LIMIT_MAX = 1000 };

/** The hits so far that come first: a heap with the last one on top. */
struct heap {
    bool longest_first;
    struct lac_slice_row *rows;
    uint32_t count;
    uint32_t capacity;
};

struct search {
    struct lac_trace_file *file;
    const struct lac_search_query *query;
    struct lac_error *reterr;
    uint8_t *name_matches; /**< a bit per string */
    uint8_t *chunk_matches;
    uint64_t total;
    bool has_after; /**< hits come after `after` */
    struct lac_slice_row after;
    struct heap heap;
    uint32_t *bins; /**< hits by start, over the whole trace; NULL: not wanted */
};

/** Order of hits: by length if that is asked for, by start, then slice. */
static bool is_before(const struct heap *heap, const struct lac_slice_row *a,
                      const struct lac_slice_row *b)
{
    if (heap->longest_first && a->dur_ns != b->dur_ns) {
        return a->dur_ns > b->dur_ns;
    }
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->slice < b->slice;
}

static void sift_down(struct heap *heap, uint32_t at)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        struct lac_slice_row row;

        if (child >= heap->count) {
            return;
        }
        if (child + 1 < heap->count &&
            is_before(heap, &heap->rows[child], &heap->rows[child + 1])) {
            child++;
        }
        if (!is_before(heap, &heap->rows[at], &heap->rows[child])) {
            return;
        }
        row = heap->rows[at];
        heap->rows[at] = heap->rows[child];
        heap->rows[child] = row;
        at = child;
    }
}

static void heap_add(struct heap *heap, const struct lac_slice_row *row)
{
    uint32_t at = heap->count;

    if (heap->count == heap->capacity) {
        if (is_before(heap, row, &heap->rows[0])) {
            heap->rows[0] = *row;
            sift_down(heap, 0);
        }
        return;
    }
    heap->rows[heap->count++] = *row;
    while (at > 0 && is_before(heap, &heap->rows[(at - 1) / 2], &heap->rows[at])) {
        struct lac_slice_row parent = heap->rows[(at - 1) / 2];

        heap->rows[(at - 1) / 2] = heap->rows[at];
        heap->rows[at] = parent;
        at = (at - 1) / 2;
    }
}

/** The part of the trace, of `bin_count` equal ones, in which a hit begins. */
static uint32_t bin_of(const struct search *search, int64_t start_ns)
{
    double length_ns = (double)search->file->head.info.duration_ns + 1.0;
    double bin = (double)start_ns / length_ns * search->query->bin_count;
    uint32_t last = search->query->bin_count - 1;
    return bin > last ? last : (uint32_t)bin;
}

static void offer(struct search *search, uint32_t chunk, const struct lac_slices *at, uint32_t row)
{
    if (search->bins != NULL) {
        search->bins[bin_of(search, at->start_ns[row])]++;
    }
    const struct lac_chunk_entry *entry = &search->file->chunks[chunk];
    struct lac_slice_row hit = {.slice = (uint32_t)(entry->first + row),
                                .track = entry->track,
                                .start_ns = at->start_ns[row],
                                .dur_ns = at->dur_ns[row],
                                .name = at->name[row],
                                .corr = at->corr != NULL ? at->corr[row] : 0,
                                .link = LAC_NONE,
                                .detail = LAC_NONE,
                                .lane = at->lane[row],
                                .kind = at->kind[row]};

    if (!search->has_after || is_before(&search->heap, &search->after, &hit)) {
        heap_add(&search->heap, &hit);
    }
}

static bool bit(const uint8_t *bits, uint32_t index)
{
    return (bits[index / 8] >> (index % 8) & 1) != 0;
}

static void set_bit(uint8_t *bits, uint32_t index)
{
    bits[index / 8] = (uint8_t)(bits[index / 8] | 1U << (index % 8));
}

/** Mark the names that contain `text` and the chunks that hold them. */
static enum lac_status match_names(struct search *search, const char *text)
{
    struct lac_trace_file *file = search->file;
    const struct lac_name_stat *stats = NULL;
    uint32_t stat_count = 0;
    size_t word_length = 0;
    char *word = lac_text_lower(text, &word_length);
    enum lac_status status =
        word != NULL ? lac_trace_stats(file, &stats, &stat_count, search->reterr) : LAC_ERR_NOMEM;

    for (uint32_t i = 0; i < stat_count && status == LAC_OK; i++) {
        const struct lac_name_stat *stat = &stats[i];
        uint32_t *chunks = NULL;
        uint32_t chunk_count = 0;

        if ((search->query->kind >= 0 && stat->kind != search->query->kind) ||
            !lac_text_contains(lac_model_str(&file->head, stat->name),
                               lac_strings_length(&file->head.strings, stat->name), word,
                               word_length)) {
            continue;
        }
        search->total += stat->count;
        set_bit(search->name_matches, stat->name);
        status = lac_trace_postings(file, stat, &chunks, &chunk_count, search->reterr);
        for (uint32_t c = 0; c < chunk_count && status == LAC_OK; c++) {
            set_bit(search->chunk_matches, chunks[c]);
        }
        free(chunks);
    }
    free(word);
    return status;
}

static enum lac_status scan_chunk(struct search *search, uint32_t chunk)
{
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    enum lac_status status =
        lac_trace_chunk(search->file, chunk, LAC_COLUMNS_TILE, &columns, &pin, search->reterr);

    if (status != LAC_OK) {
        return status;
    }
    for (uint32_t row = 0; row < columns->at.count; row++) {
        if (bit(search->name_matches, columns->at.name[row]) &&
            (search->query->kind < 0 || columns->at.kind[row] == search->query->kind)) {
            offer(search, chunk, &columns->at, row);
        }
    }
    lac_cache_unpin(search->file->cache, pin);
    return LAC_OK;
}

/** A chunk and where it begins, to visit chunks of all tracks in order of time. */
struct visit {
    int64_t start_ns;
    uint32_t chunk;
};

static int by_start(const void *left, const void *right)
{
    const struct visit *a = left;
    const struct visit *b = right;

    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return a->chunk < b->chunk ? -1 : 1;
}

static enum lac_status scan_names(struct search *search)
{
    struct lac_trace_file *file = search->file;
    struct visit *visits = malloc(((size_t)file->chunk_count + 1) * sizeof(*visits));
    uint32_t count = 0;
    enum lac_status status = LAC_OK;
    const bool all = search->bins != NULL || search->heap.longest_first;

    if (visits == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t c = 0; c < file->chunk_count; c++) {
        if (bit(search->chunk_matches, c) &&
            (all || file->chunks[c].start_last >= search->after.start_ns)) {
            visits[count++] = (struct visit){file->chunks[c].start_first, c};
        }
    }
    qsort(visits, count, sizeof(*visits), by_start);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (!all && search->heap.count == search->heap.capacity &&
            visits[i].start_ns > search->heap.rows[0].start_ns) {
            break; /* everything from here on comes later than what is there */
        }
        status = scan_chunk(search, visits[i].chunk);
    }
    free(visits);
    return status;
}

/** "corr:N": no index, so every chunk's correlation ids are looked at. */
static enum lac_status scan_correlation(struct search *search, uint32_t corr)
{
    struct lac_trace_file *file = search->file;

    for (uint32_t c = 0; c < file->chunk_count; c++) {
        const struct lac_chunk_columns *ids = NULL;
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        struct lac_cache_entry *columns_pin = NULL;
        enum lac_status status =
            lac_trace_chunk(file, c, 1U << LAC_COLUMN_CORR, &ids, &pin, search->reterr);

        for (uint32_t row = 0; status == LAC_OK && row < ids->at.count; row++) {
            if (ids->at.corr[row] != corr) {
                continue;
            }
            if (columns == NULL) {
                status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &columns, &columns_pin,
                                         search->reterr);
            }
            if (status == LAC_OK &&
                (search->query->kind < 0 || columns->at.kind[row] == search->query->kind)) {
                struct lac_slices at = columns->at;

                at.corr = ids->at.corr;
                search->total++;
                offer(search, c, &at, row);
            }
        }
        lac_cache_unpin(file->cache, columns_pin);
        lac_cache_unpin(file->cache, pin);
        if (status != LAC_OK) {
            return status;
        }
    }
    return LAC_OK;
}

/** "track:N": every slice of a row. */
static enum lac_status scan_track(struct search *search, uint64_t track)
{
    struct lac_trace_file *file = search->file;
    enum lac_status status = LAC_OK;

    if (track >= file->head.track_count) {
        return LAC_OK;
    }
    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && status == LAC_OK; c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &columns, &pin, search->reterr);
        for (uint32_t row = 0; status == LAC_OK && row < columns->at.count; row++) {
            if (search->query->kind < 0 || columns->at.kind[row] == search->query->kind) {
                search->total++;
                offer(search, c, &columns->at, row);
            }
        }
        lac_cache_unpin(file->cache, pin);
    }
    return status;
}

/** Offer the loader ranges of a chunk that are about `batch`. */
static enum lac_status scan_batch_chunk(struct search *search, uint32_t chunk,
                                        const int64_t *batches, int64_t batch)
{
    struct lac_trace_file *file = search->file;
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    enum lac_status status = lac_trace_chunk(
        file, chunk, LAC_COLUMNS_TILE | 1U << LAC_COLUMN_DETAIL, &columns, &pin, search->reterr);

    if (status != LAC_OK) {
        return status;
    }
    for (uint32_t row = 0; row < columns->at.count; row++) {
        const uint32_t detail = columns->at.detail[row];

        /* a chunk was checked when it was decoded: its details are there */
        if (columns->at.kind[row] == LAC_SLICE_RANGE && detail != LAC_NONE &&
            batches[detail] == batch) {
            search->total++;
            offer(search, chunk, &columns->at, row);
        }
    }
    lac_cache_unpin(file->cache, pin);
    return LAC_OK;
}

/** "batch:N": the loader's ranges of that batch, in the chunks that hold such ranges at all. */
static enum lac_status scan_batch(struct search *search, int64_t batch)
{
    int64_t *batches = NULL;
    enum lac_status status = match_names(search, "loader.");

    search->total = 0; /* names were counted */
    if (search->query->kind >= 0 && search->query->kind != LAC_SLICE_RANGE) {
        return status;
    }
    if (status == LAC_OK) {
        status = lac_trace_loader_batches(search->file, &batches, search->reterr);
    }
    for (uint32_t c = 0; c < search->file->chunk_count && status == LAC_OK; c++) {
        if (bit(search->chunk_matches, c)) {
            status = scan_batch_chunk(search, c, batches, batch);
        }
    }
    free(batches);
    return status;
}

static enum lac_status find_id(struct search *search, uint64_t slice)
{
    struct lac_trace_file *file = search->file;
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    uint32_t chunk;
    uint32_t row;
    enum lac_status status;

    if (slice >= file->head.slices.count) {
        return LAC_OK;
    }
    chunk = lac_trace_chunk_of(file, slice);
    row = (uint32_t)(slice - file->chunks[chunk].first);
    status = lac_trace_chunk(file, chunk, LAC_COLUMNS_TILE, &columns, &pin, search->reterr);
    if (status == LAC_OK) {
        if (search->query->kind < 0 || columns->at.kind[row] == search->query->kind) {
            search->total = 1;
            offer(search, chunk, &columns->at, row);
        }
        lac_cache_unpin(file->cache, pin);
    }
    return status;
}

/** "id:12", "corr:12", "batch:12" and "track:12". @return whether `text` is `prefix` and a number */
static bool parse_number(const char *text, const char *prefix, uint64_t *ret_value)
{
    size_t length = strlen(prefix);
    char *end = NULL;

    if (strncmp(text, prefix, length) != 0 || text[length] < '0' || text[length] > '9') {
        return false;
    }
    errno = 0;
    *ret_value = strtoull(text + length, &end, 10);
    return errno == 0 && *end == '\0';
}

/** A number of a cursor, and what stands behind it. @return NULL: there is none */
static const char *parse_part(const char *text, int64_t *ret_value)
{
    char *end = NULL;

    if (text == NULL || *text < '0' || *text > '9') {
        return NULL;
    }
    errno = 0;
    *ret_value = strtoll(text, &end, 10);
    return errno == 0 ? end : NULL;
}

/** Cursors are "start.slice" of the last hit, "start.slice.length" where the longest come first. */
static bool parse_cursor(struct search *search)
{
    const char *text = search->query->after;
    int64_t parts[3] = {0};
    const unsigned count = search->query->longest_first ? 3 : 2;

    if (text == NULL || *text == '\0') {
        return true;
    }
    for (unsigned i = 0; i < count && text != NULL; i++) {
        text = parse_part(text, &parts[i]);
        if (text != NULL && i + 1 < count) {
            text = *text == '.' ? text + 1 : NULL;
        }
    }
    search->has_after = true;
    search->after = (struct lac_slice_row){
        .start_ns = parts[0], .slice = (uint32_t)parts[1], .dur_ns = parts[2]};
    return text != NULL && *text == '\0' && parts[1] <= UINT32_MAX;
}

static enum lac_status run(struct search *search)
{
    const char *text = search->query->text;
    uint64_t number = 0;
    enum lac_status status;

    if (parse_number(text, "id:", &number)) {
        return find_id(search, number);
    }
    if (parse_number(text, "corr:", &number)) {
        return number > 0 && number <= UINT32_MAX ? scan_correlation(search, (uint32_t)number)
                                                  : LAC_OK;
    }
    if (parse_number(text, "track:", &number)) {
        return scan_track(search, number);
    }
    search->name_matches = calloc((size_t)search->file->head.strings.count / 8 + 1, 1);
    search->chunk_matches = calloc((size_t)search->file->chunk_count / 8 + 1, 1);
    if (search->name_matches == NULL || search->chunk_matches == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (parse_number(text, "batch:", &number)) {
        return number <= INT64_MAX ? scan_batch(search, (int64_t)number) : LAC_OK;
    }
    status = match_names(search, text);
    return status == LAC_OK ? scan_names(search) : status;
}

static int by_time(const void *left, const void *right)
{
    return is_before(&(struct heap){0}, left, right) ? -1 : 1;
}

static int by_length(const void *left, const void *right)
{
    return is_before(&(struct heap){.longest_first = true}, left, right) ? -1 : 1;
}

enum lac_status lac_trace_file_search(struct lac_trace_file *file,
                                      const struct lac_search_query *query,
                                      struct lac_search_hits *ret_hits, struct lac_error *reterr)
{
    assert(file != NULL && query != NULL && ret_hits != NULL);
    struct search search = {.file = file, .query = query, .reterr = reterr};
    enum lac_status status;

    if (query->limit < 1 || query->limit > SEARCH_LIMIT_MAX || query->text == NULL ||
        query->bin_count > LAC_SEARCH_BINS_MAX || !parse_cursor(&search)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "search: limit is 1 to %d, bins at most %d, after is the cursor of the "
                        "page before",
                        SEARCH_LIMIT_MAX, LAC_SEARCH_BINS_MAX);
    }
    if (query->bin_count > 0) {
        search.bins = calloc(query->bin_count, sizeof(*search.bins));
        if (search.bins == NULL) {
            return LAC_ERR_NOMEM;
        }
    }
    search.heap.longest_first = query->longest_first;
    search.heap.capacity = query->limit + 1;
    search.heap.rows = malloc(((size_t)query->limit + 1) * sizeof(*search.heap.rows));
    status = search.heap.rows != NULL ? run(&search) : LAC_ERR_NOMEM;
    free(search.name_matches);
    free(search.chunk_matches);
    if (status != LAC_OK) {
        free(search.heap.rows);
        free(search.bins);
        return status;
    }
    qsort(search.heap.rows, search.heap.count, sizeof(*search.heap.rows),
          query->longest_first ? by_length : by_time);
    *ret_hits = (struct lac_search_hits){.rows = search.heap.rows,
                                         .count = search.heap.count,
                                         .total = search.total,
                                         .bins = search.bins,
                                         .has_more = search.heap.count > query->limit};
    if (ret_hits->has_more) {
        const struct lac_slice_row *last = &ret_hits->rows[query->limit - 1];

        ret_hits->count = query->limit;
        const int written = snprintf(ret_hits->next, sizeof(ret_hits->next), "%lld.%u",
                                     (long long)last->start_ns, last->slice);

        if (query->longest_first) {
            (void)snprintf(ret_hits->next + written, sizeof(ret_hits->next) - (size_t)written,
                           ".%lld", (long long)last->dur_ns);
        }
    }
    return LAC_OK;
}

void lac_search_hits_done(struct lac_search_hits *hits)
{
    free(hits->rows);
    free(hits->bins);
    *hits = (struct lac_search_hits){0};
}
