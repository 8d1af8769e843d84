#ifndef LAC_COLLECTOR_SAMPLE_SAMPLE_SPOOL_H
#define LAC_COLLECTOR_SAMPLE_SAMPLE_SPOOL_H

/* The launcher's own spool: samples of the host and of the
 * job's processes (collector/FORMAT.md). */

#include <stdbool.h>
#include <stdint.h>

struct lac_sample_spool;

/** Its `fork_depth`: it is read last, when the processes that it tells of are known. */
enum { LAC_SAMPLE_SPOOL_DEPTH = 0xffff };

/** Make `folder`/node-HOST-PID.spool. @return NULL when it cannot be made (errno says why) */
struct lac_sample_spool *lac_sample_spool_create(const char *folder);
/** NULL is allowed. */
void lac_sample_spool_destroy(struct lac_sample_spool *spool);

/** Id of a series or of a "key=value" text, written at once; 0 when it cannot be. The caller keeps
 * it: a text is not looked up again. */
uint32_t lac_sample_spool_name(struct lac_sample_spool *spool, const char *text);

/** Values that follow were taken at this time. */
void lac_sample_spool_time(struct lac_sample_spool *spool, uint64_t monotonic_ns);
void lac_sample_spool_value(struct lac_sample_spool *spool, uint32_t series, double value);
void lac_sample_spool_setting(struct lac_sample_spool *spool, const char *key, const char *value);
/** Write out what came since the last time. */
void lac_sample_spool_flush(struct lac_sample_spool *spool);

/** Of the file, as `ls` shows it. */
uint64_t lac_sample_spool_bytes(const struct lac_sample_spool *spool);

#endif
