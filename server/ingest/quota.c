#include "server/ingest/quota.h"

#include "analysis/model/status.h"
#include "server/ingest/ingest_private.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lac_claim {
    struct lac_claim *next;
    char project[LAC_PROJECT_BYTES];
    char token[LAC_ID_SIZE];
    uint64_t bytes;
};

static const char *name_of(const struct lac_claim *claim, enum lac_quota_kind kind)
{
    return kind == LAC_QUOTA_PROJECT ? claim->project : claim->token;
}

/* With the quotas' lock: what is on its way beside `mine`. */
static uint64_t coming_bytes(const struct lac_ingest *ingest, enum lac_quota_kind kind,
                             const char *name, const struct lac_claim *mine)
{
    uint64_t bytes = 0;

    for (const struct lac_claim *claim = ingest->claims; claim != NULL; claim = claim->next) {
        if (claim != mine && strcmp(name_of(claim, kind), name) == 0) {
            bytes += claim->bytes;
        }
    }
    return bytes;
}

static enum lac_status refuse(struct lac_ingest *ingest, enum lac_quota_kind kind, const char *name,
                              uint64_t used_bytes, uint64_t limit_bytes, struct lac_error *reterr)
{
    char whose[LAC_PROJECT_BYTES + 32];

    (void)pthread_mutex_lock(&ingest->lock);
    ingest->stats.refused_quota++;
    (void)pthread_mutex_unlock(&ingest->lock);
    if (kind == LAC_QUOTA_TOKEN) {
        (void)snprintf(whose, sizeof(whose), "what this token uploaded");
    } else {
        (void)snprintf(whose, sizeof(whose), "%s%.120s", *name != '\0' ? "project " : "no project",
                       name);
    }
    return lac_fail(reterr, LAC_ERR_NO_SPACE, 0,
                    "the upload does not fit: %s takes %.1f of %.1f MB; delete traces of it, or "
                    "ask an administrator for more (lacuna admin quota)",
                    whose, (double)used_bytes / 1e6, (double)limit_bytes / 1e6);
}

/* With the quotas' lock. */
static enum lac_status check(struct lac_ingest *ingest, enum lac_quota_kind kind,
                             const struct lac_claim *mine, uint64_t bytes, struct lac_error *reterr)
{
    const char *const name = name_of(mine, kind);
    uint64_t limit_bytes = lac_quota_default(ingest, kind);
    uint64_t used_bytes = 0;
    enum lac_status status;

    if (kind == LAC_QUOTA_TOKEN && *name == '\0') {
        return LAC_OK;
    }
    status = lac_store_quota(ingest->options.store, kind, name, &limit_bytes, reterr);
    if (status != LAC_OK || limit_bytes == 0) {
        return status;
    }
    status = lac_store_used_bytes(ingest->options.store, kind, name, &used_bytes, reterr);
    if (status != LAC_OK) {
        return status;
    }
    used_bytes += coming_bytes(ingest, kind, name, mine);
    return used_bytes <= limit_bytes && limit_bytes - used_bytes >= bytes
               ? LAC_OK
               : refuse(ingest, kind, name, used_bytes, limit_bytes, reterr);
}

uint64_t lac_quota_default(const struct lac_ingest *ingest, enum lac_quota_kind kind)
{
    return kind == LAC_QUOTA_PROJECT ? ingest->options.quota_project_bytes
                                     : ingest->options.quota_token_bytes;
}

enum lac_status lac_quota_look(struct lac_ingest *ingest, enum lac_quota_kind kind,
                               const char *name, struct lac_quota_look *ret_look,
                               struct lac_error *reterr)
{
    assert(ingest != NULL && name != NULL && ret_look != NULL);
    const struct lac_claim nobody = {.bytes = 0};
    uint64_t limit_bytes = UINT64_MAX;
    enum lac_status status;

    *ret_look = (struct lac_quota_look){.is_default = true};
    (void)pthread_mutex_lock(&ingest->quota_lock);
    status = lac_store_quota(ingest->options.store, kind, name, &limit_bytes, reterr);
    if (status == LAC_OK) {
        status =
            lac_store_used_bytes(ingest->options.store, kind, name, &ret_look->used_bytes, reterr);
    }
    ret_look->used_bytes += coming_bytes(ingest, kind, name, &nobody);
    (void)pthread_mutex_unlock(&ingest->quota_lock);
    ret_look->is_default = limit_bytes == UINT64_MAX;
    ret_look->limit_bytes = ret_look->is_default ? lac_quota_default(ingest, kind) : limit_bytes;
    return status;
}

enum lac_status lac_quota_claim(struct lac_ingest *ingest, const struct lac_claim_request *request,
                                struct lac_claim **claim, struct lac_error *reterr)
{
    assert(ingest != NULL && request != NULL && claim != NULL);
    struct lac_claim *mine = *claim != NULL ? *claim : calloc(1, sizeof(*mine));
    enum lac_status status = LAC_OK;

    if (mine == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the upload");
    }
    if (*claim == NULL) {
        (void)snprintf(mine->project, sizeof(mine->project), "%s",
                       request->project != NULL ? request->project : "");
        (void)snprintf(mine->token, sizeof(mine->token), "%s",
                       request->token != NULL ? request->token : "");
    }
    (void)pthread_mutex_lock(&ingest->quota_lock);
    if (!request->was_begun) {
        status = check(ingest, LAC_QUOTA_PROJECT, mine, request->bytes, reterr);
        if (status == LAC_OK) {
            status = check(ingest, LAC_QUOTA_TOKEN, mine, request->bytes, reterr);
        }
    }
    if (status == LAC_OK) {
        mine->bytes = request->bytes;
        if (*claim == NULL) {
            mine->next = ingest->claims;
            ingest->claims = mine;
            *claim = mine;
        }
    } else if (*claim == NULL) {
        free(mine);
    }
    (void)pthread_mutex_unlock(&ingest->quota_lock);
    return status;
}

void lac_quota_release(struct lac_ingest *ingest, struct lac_claim *claim)
{
    struct lac_claim **link = &ingest->claims;

    if (claim == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&ingest->quota_lock);
    while (*link != claim) {
        link = &(*link)->next;
    }
    *link = claim->next;
    (void)pthread_mutex_unlock(&ingest->quota_lock);
    free(claim);
}
