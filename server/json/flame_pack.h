#ifndef LAC_SERVER_JSON_FLAME_PACK_H
#define LAC_SERVER_JSON_FLAME_PACK_H

/* A flame graph as bytes, to be kept with its trace (server/store/FORMAT.md). */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/** @param ret_bytes the caller frees @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_pack(const struct lac_flame *flame, uint8_t **ret_bytes,
                                            size_t *ret_size_bytes);

/**
 * The inverse. The bytes may be anybody's.
 *
 * @param bytes borrowed @param model bounds the ids of names
 * @return LAC_OK, LAC_ERR_CORRUPT (of another version too), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_flame_unpack(const uint8_t *bytes, size_t size_bytes,
                                              const struct lac_model *model,
                                              struct lac_flame **ret_flame);

#endif
