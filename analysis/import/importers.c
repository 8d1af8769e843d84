#include "analysis/import/importers.h"

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/closed_formats.h"
#include "analysis/import/nsys/nsys.h"
#include "analysis/import/nsys/nsys_dump.h"
#include "analysis/import/perfetto/perfetto.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/import/stacks/stack_importers.h"
#include "analysis/import/tables/table_import.h"
#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

static const struct lac_stream_importer stream_importers[] = {
    {is_sqlite, lac_nsys_import_stream},
    {lac_nsys_is_dump, lac_nsys_import_dump},
    {lac_tables_is_table, lac_tables_import},
    {lac_callgrind_is_its_own, lac_callgrind_import},
    {lac_perf_script_is_its_own, lac_perf_script_import},
    {lac_folded_is_its_own, lac_folded_import},
    {lac_speedscope_is_its_own, lac_speedscope_import},
    {lac_cprofile_is_its_own, lac_cprofile_import},
    {lac_closed_is_its_own, lac_closed_refuse},
    {lac_perfetto_is_its_own, lac_perfetto_import},
    {is_anything, lac_chrome_import},
};

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
