#include "analysis/import/importers.h"

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/closed_formats.h"
#include "analysis/import/nsys/nsys.h"
#include "analysis/import/nsys/nsys_dump.h"
#include "analysis/import/perfetto/perfetto.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/import/stacks/stack_importers.h"
#include "analysis/import/tables/table_import.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_sqlite(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 16 && memcmp(head, "SQLite format 3", 16) == 0;
}

static bool is_anything(const uint8_t *head, size_t size_bytes)
{
    (void)head;
    (void)size_bytes;
    return true;
}

static enum lac_status import_chrome(struct lac_source *source,
                                     const struct lac_import_options *options, size_t window_bytes,
                                     const char *name, struct lac_model **ret_model,
                                     struct lac_error *reterr);

static const struct lac_stream_importer stream_importers[] = {
    {is_sqlite, lac_nsys_import_stream, "SQLite of nvprof, rocpd and nsys export --type=sqlite"},
    {lac_nsys_is_dump, lac_nsys_import_dump, NULL},
    {lac_pickled_is_its_own, lac_pickled_import, "pickles of PyTorch"},
    {lac_graph_notes_is_json, lac_graph_notes_import, "annotations of CUDA graphs"},
    {lac_line_profiler_is_text, lac_line_profiler_import_text, "line_profiler"},
    {lac_scalene_is_its_own, lac_scalene_import, "scalene"},
    {lac_cprofile_is_text, lac_cprofile_import_text, NULL},
    {lac_perf_stat_is_its_own, lac_perf_stat_import, "perf stat"},
    {lac_pyspy_dump_is_its_own, lac_pyspy_dump_import, "py-spy dump"},
    {lac_tables_is_table, lac_tables_import, "tables of profilers, GPU logs"},
    {lac_callgrind_is_its_own, lac_callgrind_import, "callgrind"},
    {lac_perf_script_is_its_own, lac_perf_script_import, "perf script"},
    {lac_folded_is_its_own, lac_folded_import, "folded stacks"},
    {lac_rocprofv3_is_its_own, lac_rocprofv3_import, "rocprofv3 JSON"},
    {lac_firefox_is_its_own, lac_firefox_import, "Firefox Profiler"},
    {lac_speedscope_is_its_own, lac_speedscope_import, "speedscope"},
    {lac_cprofile_is_its_own, lac_cprofile_import, "cProfile"},
    {lac_tensorboard_is_its_own, lac_tensorboard_import, "TensorBoard events"},
    {lac_closed_is_its_own, lac_closed_refuse, NULL},
    {lac_perfetto_is_its_own, lac_perfetto_import, "Perfetto"},
    {is_anything, import_chrome, "Chrome JSON"},
};

/* What most people give comes first: the last row, databases, then the rows above it upward. */
size_t lac_importers_list(char *out, size_t capacity)
{
    static const char REST[] = ", and more: lacuna import --help";
    enum { COUNT = LAC_COUNT_OF(stream_importers) };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < COUNT; i++) {
        const char *reads = stream_importers[i == 1 ? 0 : COUNT - (i == 0 ? 1 : i)].reads;
        size_t needed = reads != NULL ? strlen(reads) + strlen(", ") : 0;
        if (needed > 0 && used + needed + (i + 1 < COUNT ? sizeof(REST) : 1) > capacity) {
            used += (size_t)snprintf(out + used, capacity - used, "%s", REST);
            break;
        }
        if (needed > 0) {
            used +=
                (size_t)snprintf(out + used, capacity - used, "%s%s", used == 0 ? "" : ", ", reads);
        }
    }
    return used < capacity ? used : capacity - 1;
}

/* The row that all is left to: what is no trace for it, either, is told what would be one. */
static enum lac_status import_chrome(struct lac_source *source,
                                     const struct lac_import_options *options, size_t window_bytes,
                                     const char *name, struct lac_model **ret_model,
                                     struct lac_error *reterr)
{
    enum lac_status status =
        lac_chrome_import(source, options, window_bytes, name, ret_model, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        char list[168];
        (void)lac_importers_list(list, sizeof(list));
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "unknown format; what is read: %s", list);
    }
    return status;
}

static const struct lac_path_importer path_importers[] = {
    {lac_nsys_is_sqlite, lac_nsys_import},
    {lac_closed_is_folder, lac_closed_refuse_folder},
    {lac_spool_is_recording, lac_spool_import},
};

const struct lac_stream_importer *lac_stream_importer_of(const uint8_t *head, size_t size_bytes)
{
    const struct lac_stream_importer *importer = stream_importers;
    while (!importer->is_its_own(head, size_bytes)) {
        importer++;
    }
    return importer;
}

const struct lac_path_importer *lac_path_importer_of(const char *path)
{
    for (size_t i = 0; i < LAC_COUNT_OF(path_importers); i++) {
        if (path_importers[i].is_its_own(path)) {
            return &path_importers[i];
        }
    }
    return NULL;
}
