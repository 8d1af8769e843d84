#ifndef LAC_SERVER_PEOPLE_PEOPLE_PRIVATE_H
#define LAC_SERVER_PEOPLE_PEOPLE_PRIVATE_H

#include "analysis/model/status.h"
#include "server/http/principal.h"
#include "server/people/password.h" // IWYU pragma: export
#include "server/people/people.h"
#include "server/people/throttle.h"
#include "server/store/people_rows.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct lac_people {
    struct lac_store *store;
    pthread_mutex_t reload_lock; /**< held while rows are read and swapped; before `lock` */
    pthread_mutex_t lock;        /**< guards all below; held for microseconds */
    struct lac_people_rows rows;
    struct lac_throttle throttle;
    bool has_used_tokens; /**< since they were last kept */
    int64_t touched_ms;   /**< when they were; of the one thread that refreshes */
};

int64_t lac_people_now_ms(void);

/** Read all rows anew. */
LAC_MUST_USE enum lac_status lac_people_reload(struct lac_people *people, struct lac_error *reterr);

/** Read them anew where another process has changed the catalog before this call. Any thread. Cost
 *  where nothing changed: 20 us, and with PostgreSQL one round trip. */
void lac_people_hear(struct lac_people *people);

/* of rows that are held; NULL: none */
const struct lac_user_row *lac_people_user(const struct lac_people_rows *rows, int64_t id);
const struct lac_user_row *lac_people_user_named(const struct lac_people_rows *rows,
                                                 const char *name);
struct lac_token_row *lac_people_token(const struct lac_people_rows *rows, const uint8_t *hash);

void lac_people_principal_of(const struct lac_user_row *user, struct lac_principal *ret_who);

#endif
