#ifndef LAC_ANALYSIS_DIAGNOSE_PYTHON_FRAME_H
#define LAC_ANALYSIS_DIAGNOSE_PYTHON_FRAME_H

/*
 * What the text of a Python frame says: "photos/data.py(64): __getitem__". Recorders write a path
 * below a folder of imports ("torch/nn/functional.py") or a whole one. Pure functions on untrusted
 * bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whose code a frame is. */
enum lac_frame_owner {
    LAC_FRAME_USER = 0,  /**< the job's own, or a library's that does the job's work */
    LAC_FRAME_FRAMEWORK, /**< runs the job's loop for it: accelerate, lightning, a trainer */
    LAC_FRAME_RUNTIME,   /**< PyTorch and Python themselves */
};

/** A frame taken apart; borrowed from the text. */
struct lac_frame {
    const char *path;
    size_t path_length; /**< below the folder of imports, where the text has that folder */
    int64_t line;
    const char *function;
    size_t function_length;
};

/** Take "path.py(42): function" apart. @return false for anything else: a built-in function, a
 *  module's name */
bool lac_frame_parse(const char *text, size_t length, struct lac_frame *ret_frame);

enum lac_frame_owner lac_frame_owner_of(const struct lac_frame *frame);

/** Whether the time in a frame is work of its own: of the job, of a library, or making a batch. */
bool lac_frame_does_work(const struct lac_frame *frame);

/** First part of the path: "scipy" of scipy/ndimage/interpolation.py, "" of a file alone. */
void lac_frame_package(const struct lac_frame *frame, const char **ret_name, size_t *ret_length);

/** Whether a Python function, built-in or not, waits for another thread, process or device: its time
 *  is not its own. */
bool lac_frame_is_waiting(const char *text, size_t length);

#endif
