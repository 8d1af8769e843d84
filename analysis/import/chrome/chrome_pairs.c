/*
 * Intervals and arrows that come in pieces: B and E, b and e, s and f. Events need not come in
 * order of time, so all pieces are kept and matched at the end, each thread's or id's in order of
 * time.
 */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    uint64_t key; /**< thread, or hash of category and id; pieces of one key are matched */
    int64_t ts_ns;
    uint32_t order; /**< place in the input */
    uint32_t thread;
    uint32_t category; /**< string id, async only */
    struct lac_chrome_name name;
    uint32_t args; /**< index into args.entries, LAC_NONE */
    uint32_t first_number;
    uint8_t event_class;
    char phase;
};

struct arrow {
    uint64_t id;
    int64_t ts_ns;
    uint32_t thread;
    uint32_t name;
    char step;
    bool bind_enclosing;
};

struct lac_chrome_pairs {
    struct piece *pieces; /**< B and E */
    uint64_t piece_count, piece_capacity;
    struct piece *asyncs; /**< b, n and e */
    uint64_t async_count, async_capacity;
    struct arrow *arrows;
    uint64_t arrow_count, arrow_capacity;
    int64_t *numbers; /**< of the arguments of all pieces */
    uint64_t number_count, number_capacity;
    uint32_t *stack; /**< while matching: pieces that are open */
    uint64_t stack_count, stack_capacity;
    int64_t end_ns; /**< where intervals that never ended are closed */
    uint64_t unended_count, unbegun_count, misnamed_count, far_count;
};

enum lac_status lac_chrome_pairs_create(struct lac_chrome *chrome)
{
    chrome->pairs = calloc(1, sizeof(*chrome->pairs));
    return chrome->pairs != NULL ? LAC_OK : lac_chrome_no_memory(chrome);
}

void lac_chrome_pairs_destroy(struct lac_chrome_pairs *pairs)
{
    if (pairs == NULL) {
        return;
    }
    free(pairs->pieces);
    free(pairs->asyncs);
    free(pairs->arrows);
    free(pairs->numbers);
    free(pairs->stack);
    free(pairs);
}

/* --- keeping -----------------------------------------------------------------------------------*/

static enum lac_status keep_piece(struct lac_chrome *chrome, struct piece **list, uint64_t *count,
                                  uint64_t *capacity, struct piece *piece)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    const struct lac_args *args = NULL;
    enum lac_status status = lac_chrome_find_args(chrome, &args);
    if (status != LAC_OK) {
        return status;
    }
    uint32_t number_count = args != NULL ? args->number_count : 0;
    if (*count >= LAC_NONE || pairs->number_count + number_count >= LAC_NONE) {
        return lac_chrome_pass(chrome, LAC_ERR_LIMIT);
    }
    status = LAC_GROW(*list, capacity, *count + 1);
    if (status == LAC_OK) {
        status =
            LAC_GROW(pairs->numbers, &pairs->number_capacity, pairs->number_count + number_count);
    }
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    piece->ts_ns = chrome->raw.ts_ns;
    piece->order = (uint32_t)*count;
    piece->phase = (char)chrome->raw.phase;
    piece->args = args != NULL ? (uint32_t)(args - chrome->args.entries) : LAC_NONE;
    piece->first_number = (uint32_t)pairs->number_count;
    if (number_count) {
        memcpy(pairs->numbers + pairs->number_count, chrome->scratch.numbers,
               number_count * sizeof(*pairs->numbers));
    }
    pairs->number_count += number_count;
    (*list)[(*count)++] = *piece;
    if (piece->phase == 'B' || piece->phase == 'b') {
        lac_builder_count_time(chrome->builder, piece->ts_ns);
    }
    return LAC_OK;
}

enum lac_status lac_chrome_pair(struct lac_chrome *chrome, uint32_t thread,
                                struct lac_chrome_name name, enum lac_event_class event_class)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    struct piece piece = {
        .key = thread, .thread = thread, .name = name, .event_class = (uint8_t)event_class};
    return keep_piece(chrome, &pairs->pieces, &pairs->piece_count, &pairs->piece_capacity, &piece);
}

/* Always the same seed: pieces are sorted by these, and the same input must give the same ids. No
 * table hangs on them that could be flooded. */
enum { ID_SEED = 0x6c6163 };

static uint64_t hash_text(const struct lac_json_span *text)
{
    if (text->at != NULL && !text->plain && text->size_bytes <= LAC_UNESCAPED_MAX) {
        uint8_t decoded[LAC_UNESCAPED_ROOM];
        struct lac_json_repairs ignored = {0}; /* counted when the event was parsed */
        size_t size = lac_json_string_decode(text->at, text->size_bytes, decoded, &ignored);
        return lac_hash_bytes(decoded, size, ID_SEED);
    }
    return text->at != NULL ? lac_hash_bytes(text->at, text->size_bytes, ID_SEED) : 0;
}

/* Hash of what identifies an async interval or an arrow apart from its category: "id", or the
 * text of "id2": {"local": ...} (per process) or {"global": ...}. */
static uint64_t hash_id(struct lac_chrome *chrome, uint32_t thread)
{
    struct lac_raw_event *raw = &chrome->raw;
    if (raw->id2.at == NULL) {
        return hash_text(&raw->id);
    }
    const uint8_t *next = NULL;
    size_t size = 0;
    struct lac_json_repairs repairs = raw->repairs; /* counted when the event was parsed */
    enum lac_parse parse = chrome->parser->copy_value(
        &chrome->scratch, raw->id2.at, raw->id2.at + raw->id2.size_bytes, raw, &next, &size);
    raw->repairs = repairs;
    if (parse != LAC_PARSE_OK) {
        return hash_text(&raw->id2);
    }
    struct lac_member_cursor cursor = lac_member_begin(chrome->scratch.text, size);
    struct lac_member arg = {0};
    uint64_t hash = 1;
    while (lac_member_next(&cursor, &arg)) {
        hash = hash * 31 + lac_hash_bytes(arg.text, arg.text_size, ID_SEED);
        if (lac_member_is(&arg, "local")) {
            hash += 0x9e3779b97f4a7c15u * (chrome->threads[thread].process + 1);
        }
    }
    return hash;
}

enum lac_status lac_chrome_async(struct lac_chrome *chrome, uint32_t thread,
                                 struct lac_chrome_name name, enum lac_event_class event_class)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    struct lac_chrome_name category;
    enum lac_status status = lac_chrome_intern(chrome, &chrome->raw.cat, &category);
    if (status != LAC_OK) {
        return status;
    }
    struct piece piece = {.thread = thread,
                          .category = category.id,
                          .name = name,
                          .event_class = (uint8_t)event_class};
    uint64_t index = pairs->async_count;
    status =
        keep_piece(chrome, &pairs->asyncs, &pairs->async_count, &pairs->async_capacity, &piece);
    if (status == LAC_OK) { /* after the arguments were taken: finding the id reuses their buffer */
        pairs->asyncs[index].key =
            (hash_id(chrome, thread) * 3 + hash_text(&chrome->raw.scope)) * 0x9e3779b97f4a7c15u +
            category.id;
    }
    return status;
}

enum lac_status lac_chrome_arrow(struct lac_chrome *chrome, uint32_t thread,
                                 struct lac_chrome_name name)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    const struct lac_raw_event *raw = &chrome->raw;
    enum lac_status status =
        LAC_GROW(pairs->arrows, &pairs->arrow_capacity, pairs->arrow_count + 1);
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    pairs->arrows[pairs->arrow_count++] = (struct arrow){
        .id = hash_id(chrome, thread) * 0x9e3779b97f4a7c15u + hash_text(&raw->cat),
        .ts_ns = raw->ts_ns,
        .thread = thread,
        .name = name.id,
        .step = (char)raw->phase,
        .bind_enclosing = raw->bind_enclosing || raw->phase != 'f',
    };
    return LAC_OK;
}

/* --- matching ----------------------------------------------------------------------------------*/

static int compare_pieces(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    if (a->ts_ns != b->ts_ns) {
        return a->ts_ns < b->ts_ns ? -1 : 1;
    }
    return a->order < b->order ? -1 : 1;
}

static void sort_pieces(struct piece *pieces, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        if (compare_pieces(&pieces[i - 1], &pieces[i]) > 0) {
            qsort(pieces, (size_t)count, sizeof(*pieces), compare_pieces);
            return;
        }
    }
}

static uint32_t count_numbers(const struct lac_chrome *chrome, const struct piece *piece)
{
    return piece->args == LAC_NONE ? 0 : chrome->args.entries[piece->args].number_count;
}

/* Both ends may have arguments: then the interval has those of the begin and those of the end. */
static enum lac_status join_args(struct lac_chrome *chrome, const struct piece *begin,
                                 const struct piece *end, const struct lac_args **ret_args)
{
    const struct lac_strings *strings = &chrome->model->strings;
    uint32_t first = chrome->args.entries[begin->args].template_id;
    uint32_t second = chrome->args.entries[end->args].template_id;
    size_t first_size = lac_strings_length(strings, first);
    size_t second_size = lac_strings_length(strings, second);
    if (!lac_chrome_scratch_text(&chrome->scratch, 0, first_size + second_size)) {
        return lac_chrome_no_memory(chrome);
    }
    uint8_t *text = chrome->scratch.text;
    memcpy(text, lac_strings_get(strings, first), first_size);
    text[first_size - 1] = ',';
    memcpy(text + first_size, lac_strings_get(strings, second) + 1, second_size - 1);
    size_t size = first_size + second_size - 1;
    uint32_t count = 0, before = count_numbers(chrome, begin), after = count_numbers(chrome, end);
    const int64_t *numbers = chrome->pairs->numbers;
    for (; count < before + after; count++) {
        if (!lac_chrome_scratch_number(&chrome->scratch, count)) {
            return lac_chrome_no_memory(chrome);
        }
        chrome->scratch.numbers[count] = count < before
                                             ? numbers[begin->first_number + count]
                                             : numbers[end->first_number + count - before];
    }
    return lac_chrome_pass(
        chrome, lac_args_cache_find(&chrome->args, &chrome->model->strings, text, size,
                                    lac_hash_bytes(text, size, chrome->scratch.hash_seed), count,
                                    ret_args));
}

/* The slice from `begin` to `end` (NULL: it never ended). */
static enum lac_status add_interval(struct lac_chrome *chrome, const struct piece *begin,
                                    const struct piece *end, uint32_t track)
{
    struct lac_interval interval = {
        .start_ns = begin->ts_ns,
        .thread = begin->thread,
        .track = track,
        .name = begin->name.id || end == NULL ? begin->name : end->name,
        .event_class = (enum lac_event_class)begin->event_class,
    };
    int64_t end_ns = end != NULL ? end->ts_ns : chrome->pairs->end_ns;
    if (__builtin_sub_overflow(end_ns, begin->ts_ns, &interval.dur_ns)) {
        interval.dur_ns = INT64_MAX; /* finish() drops and counts it */
    }
    const struct piece *owner = begin->args != LAC_NONE || end == NULL ? begin : end;
    if (begin->args != LAC_NONE && end != NULL && end->args != LAC_NONE) {
        enum lac_status status = join_args(chrome, begin, end, &interval.args);
        if (status != LAC_OK) {
            return status;
        }
        interval.numbers = chrome->scratch.numbers;
    } else if (owner->args != LAC_NONE) {
        interval.args = &chrome->args.entries[owner->args];
        if (interval.args->number_count) {
            interval.numbers = chrome->pairs->numbers + owner->first_number;
        }
    }
    if (end != NULL) {
        chrome->model->info.slice_count++;
    }
    return lac_chrome_interval(chrome, &interval);
}

static enum lac_status push(struct lac_chrome *chrome, uint32_t piece)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    enum lac_status status = LAC_GROW(pairs->stack, &pairs->stack_capacity, pairs->stack_count + 1);
    if (status == LAC_OK) {
        pairs->stack[pairs->stack_count++] = piece;
    }
    return lac_chrome_pass(chrome, status);
}

/* Take entry `i` out of the stack. */
static uint32_t take(struct lac_chrome_pairs *pairs, uint64_t i)
{
    uint32_t piece = pairs->stack[i];
    memmove(pairs->stack + i, pairs->stack + i + 1,
            (size_t)(pairs->stack_count - i - 1) * sizeof(*pairs->stack));
    pairs->stack_count--;
    return piece;
}

/* Which open begin an end closes: the innermost of its name, else (B and E only need nest, and an
 * E needs no name) the innermost. Looks 64 levels deep. UINT64_MAX: none. */
static uint64_t find_begin(struct lac_chrome_pairs *pairs, const struct piece *pieces,
                           const struct piece *end, bool needs_name)
{
    uint64_t count = pairs->stack_count;
    if (count == 0) {
        return UINT64_MAX;
    }
    for (uint64_t i = count; i > 0 && i + 64 > count; i--) {
        if (pieces[pairs->stack[i - 1]].name.id == end->name.id) {
            return i - 1;
        }
    }
    if (needs_name) {
        return UINT64_MAX;
    }
    if (end->name.id) {
        pairs->misnamed_count++;
    }
    return count - 1;
}

static enum lac_status async_track(struct lac_chrome *chrome, const struct piece *piece,
                                   uint32_t *ret_track)
{
    uint32_t process = 0;
    enum lac_status status =
        lac_chrome_model_process(chrome, chrome->threads[piece->thread].process, &process);
    if (status != LAC_OK) {
        return status;
    }
    status = lac_builder_track(chrome->builder, LAC_TRACK_ASYNC, process, piece->category, -1,
                               ret_track);
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    struct lac_track *track = lac_builder_track_at(chrome->builder, *ret_track);
    track->name = piece->category;
    track->device = -1;
    return LAC_OK;
}

static enum lac_status add_async_instant(struct lac_chrome *chrome, const struct piece *piece)
{
    const struct lac_args *args =
        piece->args == LAC_NONE ? NULL : &chrome->args.entries[piece->args];
    struct lac_slice_in slice = {
        .start_ns = piece->ts_ns,
        .name = piece->name.id,
        .detail = LAC_NONE,
        .args = args != NULL ? args->template_id : 0,
        .kind = LAC_SLICE_INSTANT,
    };
    enum lac_status status = async_track(chrome, piece, &slice.track);
    if (status != LAC_OK) {
        return status;
    }
    uint32_t number_count = args != NULL ? args->number_count : 0;
    const int64_t *numbers = number_count ? chrome->pairs->numbers + piece->first_number : NULL;
    return lac_chrome_slice(chrome, &slice, numbers, number_count);
}

static enum lac_status close_piece(struct lac_chrome *chrome, const struct piece *begin,
                                   const struct piece *end, bool is_async)
{
    uint32_t track = LAC_NONE;
    enum lac_status status = is_async ? async_track(chrome, begin, &track) : LAC_OK;
    return status == LAC_OK ? add_interval(chrome, begin, end, track) : status;
}

static bool is_near(const struct lac_chrome *chrome, int64_t ts_ns)
{
    return (uint64_t)ts_ns - (uint64_t)chrome->first_ns <= (uint64_t)LAC_TIME_MAX_NS;
}

/* What is still open when the pieces of one key end. */
static enum lac_status close_rest(struct lac_chrome *chrome, const struct piece *pieces,
                                  bool is_async)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    enum lac_status status = LAC_OK;
    for (uint64_t i = 0; i < pairs->stack_count && status == LAC_OK; i++) {
        const struct piece *begin = &pieces[pairs->stack[i]];
        if (!is_near(chrome, begin->ts_ns)) { /* itself too far from the trace */
            pairs->far_count++;
            continue;
        }
        pairs->unended_count++;
        status = close_piece(chrome, begin, NULL, is_async);
    }
    pairs->stack_count = 0;
    return status;
}

static enum lac_status match(struct lac_chrome *chrome, struct piece *pieces, uint64_t count,
                             bool is_async)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    enum lac_status status = LAC_OK;
    sort_pieces(pieces, count);
    for (uint64_t i = 0; i < count && status == LAC_OK; i++) {
        const struct piece *piece = &pieces[i];
        if (piece->phase == 'B' || piece->phase == 'b') {
            status = push(chrome, (uint32_t)i);
        } else if (piece->phase == 'n') {
            status = add_async_instant(chrome, piece);
        } else {
            uint64_t found = find_begin(pairs, pieces, piece, is_async);
            if (found == UINT64_MAX) {
                pairs->unbegun_count++;
            } else {
                status = close_piece(chrome, &pieces[take(pairs, found)], piece, is_async);
            }
        }
        if (status == LAC_OK && (i + 1 == count || pieces[i + 1].key != piece->key)) {
            status = close_rest(chrome, pieces, is_async);
        }
    }
    return status;
}

/* The row an arrow touches: the thread's, or that of the stream it stands for. */
static uint32_t arrow_track(const struct lac_chrome *chrome, uint32_t thread)
{
    const struct lac_chrome_thread *entry = &chrome->threads[thread];
    if (entry->track[LAC_ROW_THREAD] != LAC_NONE) {
        return entry->track[LAC_ROW_THREAD];
    }
    return entry->gpu[LAC_GPU_ROW_STREAM].track;
}

static enum lac_status add_arrows(struct lac_chrome *chrome)
{
    const struct lac_chrome_pairs *pairs = chrome->pairs;
    uint64_t lost = 0;
    for (uint64_t i = 0; i < pairs->arrow_count; i++) {
        const struct arrow *arrow = &pairs->arrows[i];
        uint32_t track = arrow_track(chrome, arrow->thread);
        if (track == LAC_NONE) {
            lost++;
            continue;
        }
        enum lac_status status =
            lac_builder_flow(chrome->builder, arrow->step, arrow->id, arrow->name, track,
                             arrow->ts_ns, arrow->bind_enclosing);
        if (status != LAC_OK) {
            return lac_chrome_pass(chrome, status);
        }
    }
    if (lost) {
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "arrow_without_row", lost,
                        "Arrow ends on threads that have no intervals were dropped.");
    }
    return LAC_OK;
}

static int64_t last_piece(const struct lac_chrome *chrome, const struct piece *pieces,
                          uint64_t count, int64_t last_ns)
{
    for (uint64_t i = 0; i < count; i++) {
        last_ns = pieces[i].ts_ns > last_ns && is_near(chrome, pieces[i].ts_ns) ? pieces[i].ts_ns
                                                                                : last_ns;
    }
    return last_ns;
}

/* The last start of what is kept: one event of another century would take with it all intervals
 * that are closed at its time. */
static int64_t end_of_trace(const struct lac_chrome *chrome)
{
    const struct lac_slices *slices = &chrome->model->slices;
    const struct lac_chrome_pairs *pairs = chrome->pairs;
    int64_t last_ns = chrome->first_ns;
    if (!chrome->has_time || is_near(chrome, chrome->last_ns)) {
        return chrome->last_ns;
    }
    for (uint64_t i = 0; i < slices->count; i++) {
        last_ns = slices->start_ns[i] > last_ns && is_near(chrome, slices->start_ns[i])
                      ? slices->start_ns[i]
                      : last_ns;
    }
    last_ns = last_piece(chrome, pairs->pieces, pairs->piece_count, last_ns);
    return last_piece(chrome, pairs->asyncs, pairs->async_count, last_ns);
}

enum lac_status lac_chrome_pairs_finish(struct lac_chrome *chrome)
{
    struct lac_chrome_pairs *pairs = chrome->pairs;
    if (!is_near(chrome, chrome->last_ns)) {
        chrome->first_ns = lac_builder_origin(chrome->builder);
    }
    pairs->end_ns = end_of_trace(chrome);
    enum lac_status status = match(chrome, pairs->pieces, pairs->piece_count, false);
    if (status == LAC_OK) {
        status = match(chrome, pairs->asyncs, pairs->async_count, true);
    }
    if (status == LAC_OK) {
        status = add_arrows(chrome);
    }
    if (pairs->unended_count) {
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "begin_without_end", pairs->unended_count,
                        "Intervals that never ended were closed at the end of the trace.");
    }
    if (pairs->far_count) {
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "time_out_of_range", pairs->far_count,
                        "Events more than 104 days from most others were dropped.");
    }
    if (pairs->unbegun_count) {
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "end_without_begin", pairs->unbegun_count,
                        "Ends of intervals that never began were dropped.");
    }
    if (pairs->misnamed_count) {
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "end_name_differs", pairs->misnamed_count,
                        "Ends of another name than the open interval closed it all the same.");
    }
    return status;
}
