#ifndef LAC_SERVER_HANGS_HANGS_H
#define LAC_SERVER_HANGS_HANGS_H

/* Jobs that hang now, by the upload that their recording comes with. README.md has the picture. */

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_HANGS_MAX = 256,
    LAC_HANG_LEASE_S = 300, /**< without a word from its launcher */
};

/** One of them; texts are UTF-8 in one line. */
struct lac_hang {
    char upload[27];
    char project[513]; /**< "" none */
    char name[513];    /**< of the recording */
    char run[513];     /**< "" none */
    int64_t since_unix_ms;
    int64_t heard_unix_ms;
    uint64_t heard_ns; /**< of a clock that nobody sets */
    int64_t after_s;   /**< so long nothing had moved when it was told */
    int64_t steps;     /**< that were done */
    int64_t rank;      /**< that the others wait for; -1 not known */
    char doing[512];
    char where[512];
    char source[256];
    char others[512];
};

struct lac_hangs;

/** @return NULL: no memory */
struct lac_hangs *lac_hangs_create(void);
/** NULL is allowed. */
void lac_hangs_destroy(struct lac_hangs *hangs);

enum lac_hangs_answer {
    LAC_HANGS_KNOWN, /**< it was there: what it says is new now */
    LAC_HANGS_NEW,   /**< and no other launcher of its run has told one */
    LAC_HANGS_MORE,  /**< another launcher of its run has told one before */
    LAC_HANGS_FULL,
};

/** Keep what a launcher says; since_unix_ms stays that of the first time. */
enum lac_hangs_answer lac_hangs_put(struct lac_hangs *hangs, const struct lac_hang *hang);

/** It is over. @param ret what it was @return false: there is none
 *  @param ret_is_last whether no other launcher of its run tells one */
bool lac_hangs_remove(struct lac_hangs *hangs, const char *upload, struct lac_hang *ret,
                      bool *ret_is_last);

/** Forget those that nobody repeats, and those of which `is_over` says so; that is called with the
 *  hangs locked. */
void lac_hangs_sweep(struct lac_hangs *hangs, uint64_t now_ns,
                     bool (*is_over)(void *context, const char *upload), void *context);

/** A copy of the one at place `i`, the oldest first. @return false: there are no more */
bool lac_hangs_at(struct lac_hangs *hangs, uint32_t i, struct lac_hang *ret);

#endif
