#ifndef LAC_TESTS_SUPPORT_IMPORT_TEXT_H
#define LAC_TESTS_SUPPORT_IMPORT_TEXT_H

/* Importing bytes of a test, and asking the models for what tests want to know. */

#include "analysis/import/import.h"
#include "analysis/import/import_private.h"

enum { IMPORTED_MAX = 16 };

/** What an import gave. */
struct imported {
    enum lac_status status;
    struct lac_error error;
    struct lac_model *models[IMPORTED_MAX];
    size_t count;
};

/** Import with the default limits. */
struct imported import_text(const char *text);
struct imported import_sized(const void *bytes, size_t size_bytes);

/** Import in small steps, with limits (NULL: default) and the scalar or the fastest parser. */
struct imported import_tuned(const void *bytes, size_t size_bytes,
                             const struct lac_import_limits *limits, size_t window_bytes,
                             size_t feed_bytes, bool force_scalar);

struct imported import_path(const char *path);

/** Free the models. */
void imported_done(struct imported *imported);

/** Count in the import report under `code`; 0 when it is not there. */
uint64_t report_count(const struct lac_model *model, const char *code);

/** First slice of that name, or UINT64_MAX. */
uint64_t find_slice(const struct lac_model *model, const char *name);

/** First track of that kind whose id reads so, or LAC_NONE. */
uint32_t find_track(const struct lac_model *model, enum lac_track_kind kind, const char *id);

/** Arguments of a slice as JSON, in a static buffer. */
const char *args_of(const struct lac_model *model, uint64_t slice);

/** The whole file, the caller frees it; NULL when it cannot be read. */
unsigned char *read_whole(const char *path, size_t *ret_size);

#endif
