/* finish(): launches. GPU operations are linked to API calls with the same correlation id. */

#include "analysis/model/builder_private.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_gpu_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

struct census {
    uint64_t call_count;
    uint64_t work_count;
    uint32_t corr_min; /* of the calls */
    uint32_t corr_max;
};

static struct census take_census(const struct lac_slices *slices)
{
    struct census census = {.corr_min = UINT32_MAX};

    for (uint64_t i = 0; i < slices->count; i++) {
        uint32_t corr = slices->corr[i];

        if (corr == 0) {
            continue;
        }
        if (slices->kind[i] == LAC_SLICE_API) {
            census.call_count++;
            census.corr_min = corr < census.corr_min ? corr : census.corr_min;
            census.corr_max = corr > census.corr_max ? corr : census.corr_max;
        } else if (is_gpu_work(slices->kind[i])) {
            census.work_count++;
        }
    }
    return census;
}

/* Link a GPU operation to its call, and the call to the first operation it launched. */
static void bind(struct lac_slices *slices, uint32_t work, uint32_t call)
{
    uint32_t first = slices->link[call];

    slices->link[work] = call;
    if (first == LAC_NONE || slices->start_ns[work] < slices->start_ns[first]) {
        slices->link[call] = work;
    }
}

/*
 * The usual trace: ids are dense and each belongs to one call. A table by id finds it.
 * @return LAC_ERR_LIMIT when an id has several calls
 */
static enum lac_status bind_dense(struct lac_slices *slices, const struct census *census)
{
    uint64_t range = (uint64_t)census->corr_max - census->corr_min + 1;
    const size_t size_bytes = range * sizeof(uint32_t);
    uint32_t *call_of = lac_huge_pages(malloc(size_bytes), size_bytes);

    if (call_of == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(call_of, 0xff, size_bytes);
    for (uint64_t i = 0; i < slices->count; i++) {
        if (slices->corr[i] != 0 && slices->kind[i] == LAC_SLICE_API) {
            uint32_t *call = &call_of[slices->corr[i] - census->corr_min];

            if (*call != LAC_NONE) {
                free(call_of);
                return LAC_ERR_LIMIT;
            }
            *call = (uint32_t)i;
        }
    }
    for (uint64_t i = 0; i < slices->count; i++) {
        uint32_t corr = slices->corr[i];

        if (corr >= census->corr_min && corr <= census->corr_max && is_gpu_work(slices->kind[i]) &&
            call_of[corr - census->corr_min] != LAC_NONE) {
            bind(slices, (uint32_t)i, call_of[corr - census->corr_min]);
        }
    }
    free(call_of);
    return LAC_OK;
}

struct grouping {
    const struct lac_model *model;
    struct lac_slices *slices;
    uint8_t *submits; /* by name: 0 not looked at, 1 no, 2 yes */
};

/* Whether calls of that name put work on a stream: those are preferred over others of their id. */
static bool name_submits(struct grouping *g, uint32_t name)
{
    static const char *const words[] = {"Launch", "launch", "Memcpy", "memcpy",
                                        "Memset", "memset", "Copy",   "Prefetch"};

    if (g->submits[name] == 0) {
        const char *text = lac_model_str(g->model, name);

        g->submits[name] = 1;
        for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
            if (strstr(text, words[i]) != NULL) {
                g->submits[name] = 2;
            }
        }
    }
    return g->submits[name] == 2;
}

/* One pass of insertion is enough for the few calls an id has; many go through the merge sort. */
static enum lac_status sort_calls(const struct lac_slices *slices, uint32_t *calls, uint64_t count)
{
    uint32_t *scratch;

    if (count < 2) {
        return LAC_OK;
    }
    scratch = malloc(count * sizeof(*scratch));
    if (scratch == NULL) {
        return LAC_ERR_NOMEM;
    }
    lac_sort_by_time(calls, scratch, count, slices->start_ns, slices->dur_ns);
    free(scratch);
    return LAC_OK;
}

/*
 * Bind one id: of the calls that submit work (of all, if none does) the last one that started
 * before the operation, else the first. That tells a driver call from the runtime call around it,
 * and the same ids of several processes in a merged trace mostly apart.
 * `keys` hold corr << 32 | slice of both kinds; `calls` has room for all.
 */
static enum lac_status bind_group(struct grouping *g, const uint64_t *keys, uint64_t count,
                                  uint32_t *calls)
{
    struct lac_slices *slices = g->slices;
    uint64_t call_count = 0;
    bool any_submits = false;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t slice = (uint32_t)keys[i];

        if (slices->kind[slice] != LAC_SLICE_API) {
            continue;
        }
        if (name_submits(g, slices->name[slice]) && !any_submits) {
            any_submits = true;
            call_count = 0;
        }
        if (!any_submits || name_submits(g, slices->name[slice])) {
            calls[call_count++] = slice;
        }
    }
    if (call_count == 0 || call_count == count) {
        return LAC_OK;
    }
    if (sort_calls(slices, calls, call_count) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t slice = (uint32_t)keys[i];
        uint64_t low = 0;

        if (slices->kind[slice] == LAC_SLICE_API) {
            continue;
        }
        LAC_BISECT(low, call_count, middle,
                   slices->start_ns[calls[middle]] <= slices->start_ns[slice]);
        bind(slices, slice, calls[low == 0 ? 0 : low - 1]);
    }
    return LAC_OK;
}

/* Any trace: all participants sorted by id. 16 bytes for each of them. */
static enum lac_status bind_sorted(struct lac_model *model, const struct census *census)
{
    struct lac_slices *slices = &model->slices;
    uint64_t count = census->call_count + census->work_count;
    const size_t keys_bytes = count * sizeof(uint64_t);
    uint64_t *keys = lac_huge_pages(malloc(keys_bytes), keys_bytes);
    uint64_t *scratch = lac_huge_pages(malloc(keys_bytes), keys_bytes);
    uint32_t *calls = NULL; /* of one id */
    uint8_t *submits = calloc(model->strings.count, 1);
    struct grouping g = {model, slices, submits};
    enum lac_status status = LAC_ERR_NOMEM;
    uint64_t used = 0;

    if (keys == NULL || scratch == NULL || submits == NULL) {
        goto done;
    }
    for (uint64_t i = 0; i < slices->count; i++) {
        if (slices->corr[i] != 0 &&
            (slices->kind[i] == LAC_SLICE_API || is_gpu_work(slices->kind[i]))) {
            keys[used++] = (uint64_t)slices->corr[i] << 32 | i;
        }
    }
    lac_sort_by_upper(keys, scratch, count);
    free(scratch);
    scratch = NULL;
    calls = malloc(count * sizeof(*calls));
    status = calls == NULL ? LAC_ERR_NOMEM : LAC_OK;
    for (uint64_t i = 0; i < count && status == LAC_OK;) {
        uint64_t end = i + 1;

        while (end < count && keys[end] >> 32 == keys[i] >> 32) {
            end++;
        }
        status = bind_group(&g, keys + i, end - i, calls);
        i = end;
    }
done:
    free(keys);
    free(scratch);
    free(calls);
    free(submits);
    return status;
}

enum lac_status lac_finish_bind(struct lac_model *model)
{
    struct lac_slices *slices = &model->slices;
    struct census census = take_census(slices);

    memset(slices->link, 0xff, slices->count * sizeof(*slices->link)); /* LAC_NONE */
    if (census.call_count == 0 || census.work_count == 0) {
        return LAC_OK;
    }
    if ((uint64_t)census.corr_max - census.corr_min < 4 * census.call_count + 1024) {
        enum lac_status status = bind_dense(slices, &census);

        if (status != LAC_ERR_LIMIT) {
            return status;
        }
    }
    return bind_sorted(model, &census);
}
