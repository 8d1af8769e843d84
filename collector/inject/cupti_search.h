#ifndef LAC_COLLECTOR_INJECT_CUPTI_SEARCH_H
#define LAC_COLLECTOR_INJECT_CUPTI_SEARCH_H

/* Where a libcupti for this process may be, and which of them first. Loads nothing. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_CUPTI_CANDIDATES_MAX = 64 };

struct lac_cupti_candidate {
    char path[PATH_MAX]; /* without a slash: the system looks for it */
    size_t place;        /* the nearest to the job's CUDA is 0 */
    int major, minor;    /* of CUDA; 0: its name does not say */
    uint8_t fit;         /* 0 the driver can use it, 1 not known, 2 it is newer than the driver */
};

struct lac_cupti_search {
    char loaded[PATH_MAX]; /* one that the process has loaded, or "" */
    struct lac_cupti_candidate candidates[LAC_CUPTI_CANDIDATES_MAX]; /* in order */
    size_t count;
};

/**
 * Look around the libraries of CUDA that the process has loaded, then where the system does, then in
 * the toolkit. What fits the driver comes first from all places, a newer one last; of each place the
 * nearest, and there the newest. Costs a look into a dozen folders.
 */
void lac_cupti_search(struct lac_cupti_search *search);

/** Whether a file of that name is CUPTI, and of which CUDA: libcupti.so.11.8, with a hash
 * (libcupti-d0da41ae.so.12), without a version (0 and 0). */
bool lac_cupti_name(const char *name, int *ret_major, int *ret_minor);

#endif
