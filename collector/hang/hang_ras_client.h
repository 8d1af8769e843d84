#ifndef LAC_COLLECTOR_HANG_HANG_RAS_CLIENT_H
#define LAC_COLLECTOR_HANG_HANG_RAS_CLIENT_H

/*
 * Asks NCCL's RAS service (hang_ras.h). Never waits: each call does what can be done at once.
 *
 *   begin -> WAITS ... -> DONE (the answer can be parsed) | FAILED (there is none; not an error)
 */

#include "collector/hang/hang_ras.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_ras_progress { LAC_RAS_WAITS, LAC_RAS_DONE, LAC_RAS_FAILED };

struct lac_ras_client;

/** @param address "HOST:PORT" with a numeric host, [HOST] for IPv6, or localhost; NULL: the default of
 * NCCL, localhost:28028 @return NULL: out of memory */
struct lac_ras_client *lac_ras_client_create(const char *address);
/** NULL is allowed. */
void lac_ras_client_destroy(struct lac_ras_client *client);

/** Ask, unless an answer is still waited for. */
void lac_ras_client_begin(struct lac_ras_client *client, uint64_t now_ns);

/** Go on. What takes more than ten seconds has failed, and an answer larger than 8 MiB. With FAILED
 * also where nothing was asked. */
enum lac_ras_progress lac_ras_client_go_on(struct lac_ras_client *client, uint64_t now_ns);

/** After DONE. @return false: it cannot be understood */
bool lac_ras_client_parse(const struct lac_ras_client *client, struct lac_ras *ret);

/** Why there is no answer; "" after DONE. */
const char *lac_ras_client_why(const struct lac_ras_client *client);

#endif
