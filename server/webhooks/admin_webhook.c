/* `lacuna admin webhook`. See admin_webhook.h. */

#include "server/webhooks/admin_webhook.h"

#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"
#include "server/store/journal_rows.h"
#include "server/store/store.h"
#include "server/store/webhook_rows.h"
#include "server/webhooks/address.h"
#include "server/webhooks/webhooks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(int exit_status, const char *what)
{
    (void)fprintf(stderr, "lacuna admin webhook: %s\n", what);
    return exit_status;
}

static enum lac_status list(struct lac_store *store, const char *project, struct lac_error *reterr)
{
    struct lac_webhook *hooks = calloc(LAC_WEBHOOKS_MAX, sizeof(*hooks));
    uint32_t count = 0;
    enum lac_status status = hooks != NULL
                                 ? lac_webhooks_list(store, project, hooks, &count, reterr)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");

    for (uint32_t i = 0; i < count; i++) {
        char shown[320];

        (void)printf("%s %-5s %" PRIu64 " delivered, %" PRIu64 " waiting, %" PRIu64 " given up  %s",
                     hooks[i].id, hooks[i].is_slack ? "slack" : "json", hooks[i].delivered_count,
                     hooks[i].waiting_count, hooks[i].failed_count, hooks[i].url);
        (void)printf(" (%s)%s%s\n", hooks[i].events + (hooks[i].events[0] == ' '),
                     hooks[i].problem[0] != '\0' ? ": " : "",
                     lac_terminal_string(hooks[i].problem, shown, sizeof(shown)));
    }
    free(hooks);
    return status;
}

static int act(struct lac_store *store, const struct lac_admin_webhook *asked,
               struct lac_webhook *hook)
{
    struct lac_error error = {0};
    enum lac_status status;

    if (strcmp(asked->verb, "list") == 0) {
        status = list(store, hook->project, &error);
    } else if (strcmp(asked->verb, "remove") == 0) {
        status = lac_webhooks_remove(store, hook->project, asked->operand, &error);
    } else {
        status = lac_webhooks_add(store, hook, &error);
        if (status == LAC_OK) {
            (void)printf("webhook %s\nsecret  %s (shown this once)\n", hook->id, hook->secret);
        }
    }
    return status != LAC_OK ? fail(1, error.message) : fflush(stdout) == 0 ? 0 : 1;
}

int lac_admin_webhook(const struct lac_admin_webhook *asked)
{
    const struct lac_store_options options = {.data_dir = asked->data_dir};
    const bool is_add = strcmp(asked->verb, "add") == 0;
    struct lac_webhook hook = {.is_slack = asked->is_slack};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    struct lac_nets allowed;
    const char *problem;
    int status;

    if (!is_add && strcmp(asked->verb, "list") != 0 && strcmp(asked->verb, "remove") != 0) {
        return fail(2, "give list, add URL or remove ID");
    }
    if ((asked->operand == NULL) != (strcmp(asked->verb, "list") == 0) ||
        strlen(asked->project) >= sizeof(hook.project)) {
        return fail(2, is_add ? "give one URL" : "give list, or remove and one ID");
    }
    (void)snprintf(hook.project, sizeof(hook.project), "%s",
                   strcmp(asked->project, LAC_NO_PROJECT) == 0 ? "" : asked->project);
    (void)snprintf(hook.author, sizeof(hook.author), "administrator");
    if (is_add) {
        assert(asked->operand != NULL);
        if (!lac_nets_read(asked->allowed, &allowed)) {
            return fail(2, "--webhook-allow: addresses and networks, as in 10.0.0.0/8");
        }
        problem = strlen(asked->operand) < sizeof(hook.url)
                      ? lac_webhook_url_problem(asked->operand, &allowed)
                      : "is too long";
        if (problem != NULL) {
            (void)fprintf(stderr, "lacuna admin webhook: the address %s\n", problem);
            return 2;
        }
        if (!lac_webhook_events_read(asked->events, hook.events, sizeof(hook.events))) {
            return fail(2, "--events: names of events with blanks between them (see `lacuna admin "
                           "--help`)");
        }
        (void)snprintf(hook.url, sizeof(hook.url), "%s", asked->operand);
    }
    if (lac_store_open(&options, &store, &error) != LAC_OK) {
        return fail(1, error.message);
    }
    status = act(store, asked, &hook);
    lac_store_close(store);
    return status;
}
