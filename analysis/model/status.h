#ifndef LAC_ANALYSIS_MODEL_STATUS_H
#define LAC_ANALYSIS_MODEL_STATUS_H

#include <stddef.h>
#include <stdint.h>

/** Fails the build (with -Werror) when a caller drops a status. */
#define LAC_MUST_USE __attribute__((warn_unused_result))

/** Result of every fallible function. Values are stable: they are part of the HTTP API. */
enum lac_status {
    LAC_OK = 0,
    LAC_ERR_NOMEM,     /**< allocation failed; the call had no effect */
    LAC_ERR_IO,        /**< the operating system refused; errno kept in lac_error.sys_errno */
    LAC_ERR_CORRUPT,   /**< input bytes break the format; lac_error.offset_bytes says where */
    LAC_ERR_LIMIT,     /**< a documented limit was hit */
    LAC_ERR_NOT_FOUND, /**< no such object */
    LAC_ERR_MISUSE,    /**< caller broke the contract */
    LAC_ERR_NO_SPACE,  /**< the disk or a quota is full */
    LAC_ERR_BUSY,      /**< not now, for want of descriptors or room in a queue; later it may be */
    LAC_STATUS_COUNT_,
};

/** Details of a failure. Caller owns it; filling it never allocates. */
struct lac_error {
    enum lac_status status;
    int sys_errno;         /**< 0 when not from a system call */
    uint64_t offset_bytes; /**< where in the input, for LAC_ERR_CORRUPT */
    char message[200];     /**< one sentence, UTF-8, always NUL-terminated */
};

/** Name of `status` for logs and JSON. Never NULL; static storage. */
const char *lac_status_name(enum lac_status status);

/**
 * Fill `err` (may be NULL) and return `status`, so that a failure is one line:
 * `return lac_fail(err, LAC_ERR_CORRUPT, off, "record length %u", len);`
 * All corruption is raised here: set a breakpoint on this function.
 */
enum lac_status lac_fail(struct lac_error *err, enum lac_status status, uint64_t offset_bytes,
                         const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
