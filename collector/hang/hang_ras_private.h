#ifndef LAC_COLLECTOR_HANG_HANG_RAS_PRIVATE_H
#define LAC_COLLECTOR_HANG_HANG_RAS_PRIVATE_H

/* How both forms of an answer (hang_ras_json.c, hang_ras_text.c) fill a struct lac_ras. */

#include "collector/hang/hang_ras.h"

void lac_ras_add_pid(struct lac_ras *ras, int32_t pid);

/** A rank has launched so many operations. */
void lac_ras_count(struct lac_ras_function *function, const struct lac_ras_rank *rank,
                   uint64_t operations);
/** A whole group has. */
void lac_ras_count_group(struct lac_ras_function *function, const struct lac_ras_group *group);

/** A rank more, named where there is room. */
void lac_ras_join(struct lac_ras_group *group, const struct lac_ras_rank *rank);

#endif
