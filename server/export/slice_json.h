#ifndef LAC_SERVER_EXPORT_SLICE_JSON_H
#define LAC_SERVER_EXPORT_SLICE_JSON_H

/*
 * What a slice takes along when it leaves: its name, its category, and its arguments as recorded,
 * with what other tools expect beside them (device, stream, bytes, grid). Every text passes the
 * redactor. Private to this folder.
 */

#include "analysis/model/model.h"
#include "server/export/report.h"
#include "server/json/json_out.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_slice_json {
    struct lac_json json; /**< what is written goes there */
    const struct lac_report_source *source;
    char *recorded; /**< room for the arguments of one slice */
    size_t recorded_capacity;
};

/** Room for the name of a copy whose recorded one does not say where it goes. */
struct lac_copy_name {
    char text[96];
};

void lac_slice_json_done(struct lac_slice_json *row);

/** "args": an object. */
void lac_slice_json_args(struct lac_slice_json *row, const struct lac_track *track, uint64_t slice);

/** @return borrowed until the redactor's next call, or as long as `room` */
const char *lac_slice_json_name(struct lac_slice_json *row, uint64_t slice,
                                struct lac_copy_name *room);

/** The category of a kind of slice, as PyTorch's profiler calls it. */
const char *lac_slice_category(uint8_t kind);

/** Whether this text may leave as it is. */
bool lac_slice_json_may_leave(struct lac_slice_json *row, const char *text, size_t length);

/** A number with digits of its own. */
void lac_slice_json_digits(struct lac_slice_json *row, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
