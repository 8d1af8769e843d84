/* Pickles of Python: nothing of them is called, see pickle.h. What one holds says who reads it. */

#include "analysis/import/profilers/pickled.h"

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/text/pickle.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const struct {
    bool (*is_its_own)(const struct lac_plain *root);
    enum lac_status (*read)(struct lac_profile_file *document, struct lac_model **ret_model);
} READERS[] = {
    {lac_line_profiler_is_pickled, lac_line_profiler_read},
    {lac_torch_memory_is_pickled, lac_torch_memory_read},
    {lac_flight_is_pickled, lac_flight_read_pickled},
    {lac_graph_notes_is_pickled, lac_graph_notes_read_pickled},
};

bool lac_pickled_is_its_own(const uint8_t *head, size_t size_bytes)
{
    return lac_pickle_begins(head, size_bytes);
}

enum lac_status lac_pickled_import(struct lac_source *source,
                                   const struct lac_import_options *options, size_t window_bytes,
                                   const char *name, struct lac_model **ret_model,
                                   struct lac_error *reterr)
{
    struct lac_profile_file document;
    enum lac_status status = lac_document_open(&document, source, options, window_bytes, name,
                                               LAC_DOCUMENT_PICKLE, reterr);
    bool is_known = false;
    for (size_t i = 0; i < LAC_COUNT_OF(READERS) && status == LAC_OK && !is_known; i++) {
        is_known = READERS[i].is_its_own(document.root);
        status = is_known ? READERS[i].read(&document, ret_model) : LAC_OK;
    }
    if (status == LAC_OK && !is_known) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                          "a pickle of Python that is none of those that are read: .lprof of "
                          "line_profiler, memory snapshots of PyTorch, dumps of its flight "
                          "recorder for NCCL, annotations of CUDA graphs");
    }
    lac_document_close(&document);
    return status;
}
