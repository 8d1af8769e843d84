#include "server/store/database/libpq.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum lac_status lac_libpq_load(struct lac_libpq *ret_libpq, struct lac_error *reterr)
{
    struct lac_libpq *const pq = ret_libpq;
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"PQconnectdbParams", &pq->connect},
        {"PQfinish", &pq->finish},
        {"PQreset", &pq->reset},
        {"PQconninfoParse", &pq->parse},
        {"PQconninfoFree", &pq->parse_free},
        {"PQstatus", &pq->status},
        {"PQbackendPID", &pq->backend_pid},
        {"PQerrorMessage", &pq->error_message},
        {"PQsetNoticeProcessor", &pq->set_notice_processor},
        {"PQsocket", &pq->socket},
        {"PQconsumeInput", &pq->consume_input},
        {"PQnotifies", &pq->notifies},
        {"PQfreemem", &pq->freemem},
        {"PQexec", &pq->exec},
        {"PQexecParams", &pq->exec_params},
        {"PQresultStatus", &pq->result_status},
        {"PQresultErrorField", &pq->error_field},
        {"PQntuples", &pq->row_count},
        {"PQftype", &pq->type},
        {"PQgetvalue", &pq->value},
        {"PQgetisnull", &pq->is_null},
        {"PQcmdStatus", &pq->command_tag},
        {"PQcmdTuples", &pq->changed_rows},
        {"PQclear", &pq->clear},
    };
    const char *const wish = getenv("LACUNA_LIBPQ");
    void *const library =
        dlopen(wish != NULL && wish[0] != '\0' ? wish : "libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    size_t found = 0;

    while (library != NULL && found < LAC_COUNT_OF(symbols)) {
        void *const symbol = dlsym(library, symbols[found].name);

        if (symbol == NULL) {
            break;
        }
        memcpy(symbols[found].place, &symbol, sizeof(symbol));
        found++;
    }
    return found == LAC_COUNT_OF(symbols)
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_IO, 0,
                          "a catalog in PostgreSQL needs libpq, which cannot be loaded: install it "
                          "(libpq5 on Debian and Ubuntu, libpq on Fedora)");
}

bool lac_libpq_reads(const struct lac_libpq *pq, const char *address)
{
    struct lac_pq_option *const options = pq->parse(address, NULL);
    bool readable = options != NULL;

    for (const struct lac_pq_option *at = options; at != NULL && at->keyword != NULL; at++) {
        if (at->value != NULL &&
            ((strcmp(at->keyword, "port") == 0 &&
              strspn(at->value, "0123456789,") < strlen(at->value)) ||
             (strcmp(at->keyword, "dbname") == 0 && strchr(at->value, '@') != NULL))) {
            readable = false;
        }
    }
    if (options != NULL) {
        pq->parse_free(options);
    }
    return readable;
}
