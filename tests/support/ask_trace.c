#include "tests/support/ask_trace.h"

#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_file.h"

#include <stdlib.h>

static void ask_for_flames(struct lac_trace_file *file, uint32_t (*pick)(uint32_t below))
{
    struct lac_flame_options options = {.t0_ns = pick(10000000)};
    struct lac_error error;

    options.t1_ns = options.t0_ns + 1 + pick(10000000);
    for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_CPU; metric++) {
        struct lac_flame_part part;
        struct lac_flame *flame = NULL;

        options.metric = (enum lac_flame_metric)metric;
        options.by = (enum lac_flame_by)pick(LAC_FLAME_BY_PYTHON + 1);
        options.whole = NULL;
        if (lac_trace_flame_part(file, &options, &part, &error) == LAC_OK) {
            options.whole = &part.whole;
            if (lac_flame_create(part.model, &options, &flame) == LAC_OK) {
                lac_flame_destroy(flame);
            }
            lac_trace_flame_part_done(&part);
        }
    }
}

void ask_everything(struct lac_trace_file *file, uint32_t (*pick)(uint32_t below))
{
    const struct lac_model *head = lac_trace_file_head(file);
    uint32_t tracks[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct lac_search_query search = {.text = "op", .kind = -1, .limit = 50};
    struct lac_kernel_query kernels = {.sort = LAC_KERNEL_SORT_NAME, .limit = 20};
    struct lac_gap_query gaps = {.device = -1, .limit = 20};
    struct lac_search_hits hits = {0};
    struct lac_kernel_page kernel_page = {0};
    struct lac_gap_page gap_page = {0};
    struct lac_gap_reader *reader = NULL;
    struct lac_gap_row gap_row;
    struct lac_slice_row rows[50];
    struct lac_error error;
    const struct lac_model *model = NULL;
    struct lac_model *stretch = NULL;
    struct lac_analysis *analysis = NULL;
    char *text = NULL;
    size_t length = 0;
    uint32_t count = 0;
    bool more = false;

    for (uint8_t level = 0; level <= lac_trace_file_level_max(file); level += 2) {
        uint8_t *bytes = NULL;

        if (lac_trace_file_tiles(file, level, pick(4), 4, tracks, 8, &bytes, &length, &error) ==
            LAC_OK) {
            free(bytes);
        }
    }
    for (int i = 0; i < 4 && head->slices.count > 0; i++) {
        struct lac_slice_full full;

        if (lac_trace_file_slice(file, pick((uint32_t)head->slices.count), &full, &error) ==
            LAC_OK) {
            lac_slice_full_done(&full);
        }
    }
    (void)!lac_trace_file_window(file, pick(8), 0, INT64_MAX, LAC_NONE, 50, rows, &count, &more,
                                 &error);
    if (lac_trace_file_search(file, &search, &hits, &error) == LAC_OK) {
        lac_search_hits_done(&hits);
    }
    if (lac_trace_file_kernels(file, &kernels, &kernel_page, &error) == LAC_OK) {
        lac_kernel_page_done(&kernel_page);
    }
    if (lac_trace_file_gaps(file, &gaps, &gap_page, &error) == LAC_OK) {
        lac_gap_page_done(&gap_page);
    }
    if (lac_gap_reader_open(file, -1, 0, &reader, &error) == LAC_OK) {
        while (lac_gap_reader_next(reader, &gap_row, &error) == LAC_OK) {
        }
        lac_gap_reader_close(reader);
    }
    for (uint32_t t = 0; t < head->track_count && t < 10; t++) {
        struct lac_counter_points points;

        if (lac_trace_file_counter(file, t, 0, 1000000000, 100, &points, &error) == LAC_OK) {
            lac_counter_points_done(&points);
        }
    }
    if (lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &text, &length, &error) == LAC_OK) {
        free(text);
    }
    if (lac_trace_file_analysis(file, &analysis, &error) == LAC_OK) {
        lac_analysis_destroy(analysis);
    }
    if (lac_trace_file_stretch(file, pick(1000000), 1000000 + pick(10000000), &stretch, &error) ==
        LAC_OK) {
        lac_trace_stretch_destroy(stretch);
    }
    ask_for_flames(file, pick);
    if (lac_trace_file_model(file, &model, &error) == LAC_OK) {
        lac_trace_file_release_model(file, model);
    }
    if (lac_trace_file_whole_model(file, &model, &error) == LAC_OK) {
        if (!lac_model_is_valid(model)) {
            abort();
        }
        lac_trace_file_release_model(file, model);
    }
}
