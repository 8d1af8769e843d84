/* The thread that delivers. See webhooks.h. */

#include "server/webhooks/webhooks.h"

#include "analysis/journal/journal.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/base/log.h"
#include "server/journal/project_runs.h"
#include "server/json/json_out.h"
#include "server/store/catalog.h"
#include "server/store/journal_rows.h"
#include "server/store/webhook_rows.h"
#include "server/webhooks/address.h"
#include "server/webhooks/send.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE_MS = 60000, PROBLEM_BYTES = 256, TEXT_BYTES = 512 };

const char *const lac_webhook_events[] = {"trace.ready",    "trace.failed",   "report.published",
                                          "report.comment", "report.mention", "run.regression",
                                          "run.hang",       "run.resumed",    NULL};

struct lac_webhooks {
    struct lac_app *app;
    struct lac_webhooks_options options;
    struct lac_sender *sender;
    pthread_t thread;
    pthread_mutex_t lock; /**< guards `has_news` */
    pthread_cond_t wake;
    bool has_news;
    bool is_stopping; /**< atomic: a request in progress looks at it */
};

const struct lac_nets *lac_webhooks_allowed(const struct lac_webhooks *webhooks)
{
    return &webhooks->options.allowed;
}

bool lac_webhook_events_read(const char *text, char *out, size_t capacity_bytes)
{
    size_t used = 0;

    for (unsigned i = 0; text[strspn(text, " ")] == '\0' && lac_webhook_events[i] != NULL; i++) {
        used += (size_t)snprintf(out + used, capacity_bytes - used, "%s%s ", i == 0 ? " " : "",
                                 lac_webhook_events[i]);
    }
    while (*(text += strspn(text, " ")) != '\0') {
        const size_t length = strcspn(text, " ");
        bool is_known = false;

        for (unsigned i = 0; lac_webhook_events[i] != NULL; i++) {
            is_known = is_known || (strlen(lac_webhook_events[i]) == length &&
                                    memcmp(lac_webhook_events[i], text, length) == 0);
        }
        if (!is_known || used + length + 3 > capacity_bytes) {
            return false;
        }
        used += (size_t)snprintf(out + used, capacity_bytes - used, "%s%.*s ", used == 0 ? " " : "",
                                 (int)length, text);
        text += length;
    }
    return true;
}

/* ---- what is said ---- */

static void write_news(const struct lac_webhooks *webhooks, const struct lac_news *news,
                       struct lac_buffer *out)
{
    const size_t id_length = strcspn(news->object, "/");
    struct lac_json json;

    lac_json_init_form(&json, out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "schema", "lacuna.event/1");
    lac_json_text(&json, "event", news->event);
    lac_api_write_time(&json, "at", lac_now_unix_ms());
    lac_json_text(&json, "project", news->project[0] != '\0' ? news->project : NULL);
    lac_json_text_sized(&json, "id", news->object, id_length);
    lac_json_text(&json, "path", news->path);
    if (webhooks->options.address[0] != '\0') {
        char url[1400];

        (void)snprintf(url, sizeof(url), "%.1024s%.256s", webhooks->options.address, news->path);
        lac_json_text(&json, "url", url);
    } else {
        lac_json_null(&json, "url");
    }
    lac_json_text(&json, "text", news->text);
    lac_json_close(&json, '}');
}

/** @param only the one webhook that it is for; NULL all @param is_open who delivers finds out
 *  @return for how many */
static uint32_t queue(struct lac_webhooks *webhooks, const struct lac_news *news, const char *only,
                      bool is_open)
{
    const char *project = strcmp(news->project, LAC_NO_PROJECT) == 0 ? "" : news->project;
    struct lac_buffer body = {0};
    struct lac_error error = {0};
    uint32_t count = 0;

    if (!is_open) {
        write_news(webhooks, news, &body);
    }
    const struct lac_webhook_news row = {.project = project,
                                         .event = news->event,
                                         .object = news->object,
                                         .body = is_open ? NULL : body.bytes,
                                         .text = news->text,
                                         .only = only,
                                         .object_unix_ms = news->object_unix_ms};

    if (body.status != LAC_OK ||
        lac_webhooks_queue(webhooks->app->store, &row, &count, &error) != LAC_OK) {
        LAC_LOG(LAC_LOG_WARN, "webhook not told", lac_log_text("event", news->event),
                lac_log_text("why", error.message));
    }
    lac_buffer_done(&body);
    if (count > 0) {
        (void)pthread_mutex_lock(&webhooks->lock);
        webhooks->has_news = true;
        (void)pthread_cond_signal(&webhooks->wake);
        (void)pthread_mutex_unlock(&webhooks->lock);
    }
    return count;
}

bool lac_webhooks_try(struct lac_webhooks *webhooks, const char *id, const struct lac_news *news)
{
    return queue(webhooks, news, id, false) > 0;
}

void lac_webhooks_tell(struct lac_webhooks *webhooks, const struct lac_news *news)
{
    (void)queue(webhooks, news, NULL, false);
    if (strcmp(news->event, "trace.ready") == 0) { /* slower than before? who delivers looks */
        struct lac_news regression = *news;

        regression.event = "run.regression";
        (void)queue(webhooks, &regression, NULL, true);
    }
}

/** A trace that may be a regression. @return whether it is known; `body` is empty: it is none */
static bool find_regression(struct lac_webhooks *webhooks, struct lac_webhook_delivery *delivery,
                            struct lac_buffer *body)
{
    const char *project =
        delivery->hook.project[0] != '\0' ? delivery->hook.project : LAC_NO_PROJECT;
    struct lac_regression it;
    char trace[LAC_ID_SIZE];
    char path[LAC_ID_SIZE + 16];
    char text[TEXT_BYTES];

    (void)snprintf(trace, sizeof(trace), "%.26s", delivery->object);
    if (!lac_journal_judge(webhooks->app, project, trace, &it)) {
        return false;
    }
    if (it.lasting.run_count > 0) { /* one run may be slower by chance, people are told of more */
        char runs[32] = "";

        if (it.lasting.run_count > 1) {
            (void)snprintf(runs, sizeof(runs), "in the last %" PRIu32 " runs ",
                           it.lasting.run_count);
        }
        (void)snprintf(path, sizeof(path), "/t/%s", trace);
        (void)snprintf(text, sizeof(text),
                       "regression: %.200s; %sa step takes %.3g %% longer than in the baseline, "
                       "confidence %.4g %%",
                       delivery->text != NULL ? delivery->text : trace, runs, it.lasting.pct,
                       100.0 * it.lasting.confidence);
        free(delivery->text);
        delivery->text = strdup(text);
        write_news(webhooks,
                   &(struct lac_news){.event = delivery->event,
                                      .project = delivery->hook.project,
                                      .object = delivery->object,
                                      .path = path,
                                      .text = text},
                   body);
    }
    return true;
}

/** {"text":"..."}: Slack reads &, < and > as its own marks. */
static void write_slack(const char *text, struct lac_buffer *out)
{
    struct lac_buffer plain = {0};
    struct lac_json json;

    for (; *text != '\0'; text++) {
        if (*text == '&' || *text == '<' || *text == '>') {
            lac_buffer_puts(&plain, *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;");
        } else {
            lac_buffer_printf(&plain, "%c", *text);
        }
    }
    lac_json_init_form(&json, out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "text", plain.bytes != NULL ? plain.bytes : "");
    lac_json_close(&json, '}');
    out->status = plain.status != LAC_OK ? plain.status : out->status;
    lac_buffer_done(&plain);
}

/* ---- sending ---- */

static int send_body(struct lac_webhooks *webhooks, const struct lac_webhook_delivery *delivery,
                     const char *body, char *problem)
{
    char signature[2 * 32 + 1];
    char now[24];
    char fields[4][160];
    const char *url_problem =
        lac_webhook_url_problem(delivery->hook.url, &webhooks->options.allowed);

    if (url_problem != NULL) { /* what is allowed may have changed */
        (void)snprintf(problem, PROBLEM_BYTES, "the address %s", url_problem);
        return 0;
    }
    (void)snprintf(now, sizeof(now), "%" PRId64, lac_now_unix_ms() / 1000);
    lac_webhook_sign(delivery->hook.secret, now, body, signature);
    (void)snprintf(fields[0], sizeof(fields[0]), "Content-Type: application/json");
    (void)snprintf(fields[1], sizeof(fields[1]), "Lacuna-Event: %s", delivery->event);
    (void)snprintf(fields[2], sizeof(fields[2]), "Lacuna-Delivery: %s-%" PRId64, delivery->hook.id,
                   delivery->seq);
    (void)snprintf(fields[3], sizeof(fields[3]), "Lacuna-Signature: t=%s,v1=%s", now, signature);

    const struct lac_post post = {.url = delivery->hook.url,
                                  .body = body,
                                  .fields = {fields[0], fields[1], fields[2], fields[3]}};

    return lac_sender_post(webhooks->sender, &post, problem, PROBLEM_BYTES);
}

/** When to try again after so many attempts; 0 never. */
static int64_t next_ms(const struct lac_webhooks *webhooks, uint32_t attempts)
{
    int64_t wait_ms = webhooks->options.retry_ms;

    if (attempts + 1 >= LAC_WEBHOOK_ATTEMPTS) {
        return 0;
    }
    for (uint32_t i = 0; i < attempts && wait_ms < LAC_WEBHOOK_RETRY_MS_MAX; i++) {
        wait_ms *= 4;
    }
    return lac_now_unix_ms() +
           (wait_ms < LAC_WEBHOOK_RETRY_MS_MAX ? wait_ms : LAC_WEBHOOK_RETRY_MS_MAX);
}

static bool is_stopping(const struct lac_webhooks *webhooks)
{
    return __atomic_load_n(&webhooks->is_stopping, __ATOMIC_RELAXED);
}

static void deliver(struct lac_webhooks *webhooks, struct lac_webhook_delivery *delivery)
{
    struct lac_buffer made = {0};
    struct lac_buffer slack = {0};
    struct lac_error error = {0};
    char problem[PROBLEM_BYTES] = "";
    const char *body = delivery->body;
    bool is_over = true;
    int status = 0;

    if (body == NULL) {
        is_over = find_regression(webhooks, delivery, &made);
        body = made.status == LAC_OK ? made.bytes : NULL;
    }
    if (body != NULL && delivery->hook.is_slack) {
        write_slack(delivery->text != NULL ? delivery->text : "", &slack);
        body = slack.status == LAC_OK ? slack.bytes : NULL;
    }
    if (body != NULL) {
        status = send_body(webhooks, delivery, body, problem);
        is_over = status >= 200 && status < 300;
        if (!is_over && problem[0] == '\0') {
            (void)snprintf(problem, sizeof(problem), "the receiver answered %d", status);
        }
    }
    if (!is_stopping(webhooks) || is_over) { /* what a stop cut off was no attempt */
        if (lac_webhooks_attempted(webhooks->app->store, delivery->seq, status, problem,
                                   is_over ? 0 : next_ms(webhooks, delivery->attempts),
                                   &error) != LAC_OK) {
            LAC_LOG(LAC_LOG_WARN, "webhook", lac_log_text("why", error.message));
        }
    }
    lac_buffer_done(&made);
    lac_buffer_done(&slack);
}

static void wait_until(struct lac_webhooks *webhooks, int64_t due_ms)
{
    const int64_t now_ms = lac_now_unix_ms();
    int64_t wait_ms = due_ms - now_ms < IDLE_MS ? due_ms - now_ms : IDLE_MS;
    struct timespec end;

    wait_ms = wait_ms > 0 ? wait_ms : 1;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += wait_ms / 1000;
    end.tv_nsec += wait_ms % 1000 * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    (void)pthread_mutex_lock(&webhooks->lock);
    while (!webhooks->has_news && !is_stopping(webhooks) &&
           pthread_cond_timedwait(&webhooks->wake, &webhooks->lock, &end) != ETIMEDOUT) {
    }
    webhooks->has_news = false;
    (void)pthread_mutex_unlock(&webhooks->lock);
}

static void *run(void *context)
{
    struct lac_webhooks *webhooks = context;

    while (!is_stopping(webhooks)) {
        struct lac_webhook_delivery delivery;
        struct lac_error error = {0};
        int64_t due_ms = INT64_MAX;
        const enum lac_status status =
            lac_webhooks_due(webhooks->app->store, lac_now_unix_ms(), &delivery, &due_ms, &error);

        if (status == LAC_OK) {
            deliver(webhooks, &delivery);
        } else {
            wait_until(webhooks, status == LAC_ERR_NOT_FOUND && due_ms != INT64_MAX
                                     ? due_ms
                                     : lac_now_unix_ms() + IDLE_MS);
        }
        lac_webhook_delivery_done(&delivery);
    }
    return NULL;
}

/* ---- beginning and end ---- */

enum lac_status lac_webhooks_create(struct lac_app *app, const struct lac_webhooks_options *options,
                                    struct lac_webhooks **ret_webhooks, struct lac_error *reterr)
{
    struct lac_webhooks *webhooks = calloc(1, sizeof(*webhooks));
    pthread_condattr_t clock;

    if (webhooks == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    webhooks->app = app;
    webhooks->options = *options;
    webhooks->sender = lac_sender_create(&webhooks->options.allowed, &webhooks->is_stopping);
    (void)pthread_mutex_init(&webhooks->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&webhooks->wake, &clock);
    (void)pthread_condattr_destroy(&clock);
    if (webhooks->sender == NULL || pthread_create(&webhooks->thread, NULL, run, webhooks) != 0) {
        lac_sender_destroy(webhooks->sender);
        free(webhooks);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no thread for webhooks");
    }
    *ret_webhooks = webhooks;
    return LAC_OK;
}

void lac_webhooks_destroy(struct lac_webhooks *webhooks)
{
    if (webhooks == NULL) {
        return;
    }
    __atomic_store_n(&webhooks->is_stopping, true, __ATOMIC_RELAXED);
    (void)pthread_mutex_lock(&webhooks->lock);
    (void)pthread_cond_signal(&webhooks->wake);
    (void)pthread_mutex_unlock(&webhooks->lock);
    (void)pthread_join(webhooks->thread, NULL);
    (void)pthread_cond_destroy(&webhooks->wake);
    (void)pthread_mutex_destroy(&webhooks->lock);
    lac_sender_destroy(webhooks->sender);
    free(webhooks);
}
