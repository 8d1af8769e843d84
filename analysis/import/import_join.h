#ifndef LAC_ANALYSIS_IMPORT_IMPORT_JOIN_H
#define LAC_ANALYSIS_IMPORT_IMPORT_JOIN_H

/*
 * Files that are joined travel as one tar. Its first member says so, and how far each of the
 * others, in their order, is moved:
 *
 *   lacuna-join 1
 *   - trace.json.gz
 *   3500000000 nvidia-smi.csv
 *
 * "-" means by its own clock; a number is ns (join/join_models.h says from where). Behind it is a
 * name for messages.
 */

#include "analysis/import/join/join_models.h"
#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAC_JOIN_MEMBER_NAME "lacuna-join"

enum { LAC_JOIN_TEXT_MAX = 16384, LAC_JOIN_NAME_MAX = 160 };

/** One file of a list. */
struct lac_join_entry {
    bool has_offset;
    int64_t offset_ns;
    char name[LAC_JOIN_NAME_MAX]; /**< without control characters */
};

/** Write the list, to be the first member of the tar. @return its length, 0: it does not fit */
size_t lac_join_list_write(const struct lac_join_entry *entries, uint32_t count, char *out,
                           size_t capacity_bytes);

/** What is read of a join. Zero-initialize. */
struct lac_join_list {
    struct lac_join_entry *entries;
    struct lac_join_member *members; /**< as many, with models once they are read */
    uint32_t count;
    uint32_t at;    /**< of them are read */
    uint32_t given; /**< traces in the one that is being read */
};

bool lac_join_is_list(const uint8_t *head, size_t size_bytes);
/** @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status
lac_join_list_read(struct lac_source *source, struct lac_join_list *list, struct lac_error *reterr);
void lac_join_list_done(struct lac_join_list *list);

/** A lac_import_sink: `context` is the list; the model is the one of its next file. */
enum lac_status lac_join_list_take(void *context, struct lac_model *model,
                                   struct lac_error *reterr);

#endif
