/* A trace as a file for other tools, and what was uploaded of it. Written to scratch/ first: a reply of
 * a gigabyte is no buffer, and what fails on the way is an error and no half file. */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/sha.h"
#include "server/api/app.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/sqlite_text.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/ingest/original.h"
#include "server/json/flame_json.h"
#include "server/sql/export_sqlite.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* those that are made of the whole model come first */
enum form { SQLITE = LAC_EXPORT_SPEEDSCOPE + 1, ORIGINAL };
static const char *const forms[] = {"chrome", "perfetto", "folded", "speedscope",
                                    "sqlite", "original", NULL};
static const char *const mimes[] = {"application/json",          "application/octet-stream",
                                    "text/plain; charset=utf-8", "application/json",
                                    "application/vnd.sqlite3",   "application/octet-stream"};

struct download {
    int form;   /**< enum lac_export_form, or enum form */
    int metric; /**< enum lac_flame_metric */
    struct lac_trace_file *file;
    struct lac_redactor *redactor;
    char path[LAC_SCRATCH_PATH_BYTES];
    int fd; /**< of it; -1: none */
};

static enum lac_status fail_writing(struct lac_error *reterr)
{
    const int error = errno;
    const enum lac_status status =
        lac_fail(reterr, LAC_ERR_IO, 0, "the file cannot be written: %s", strerror(error));

    reterr->sys_errno = error;
    return status;
}

/** What is made of the whole model. */
static enum lac_status write_model(const struct download *download, struct lac_error *reterr)
{
    const struct lac_model *model = NULL;
    const int fd = dup(download->fd);
    FILE *const file = fd >= 0 ? fdopen(fd, "w") : NULL;
    struct lac_export_out out = {.file = file};
    enum lac_status status;

    if (file == NULL) {
        status = fail_writing(reterr);
        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    status = lac_trace_file_whole_model(download->file, &model, reterr);
    if (status == LAC_OK) {
        const struct lac_report_source source = {.model = model, .redactor = download->redactor};

        lac_export_form(
            (enum lac_export_form)download->form,
            &(struct lac_export_flame){.metric = (enum lac_flame_metric)download->metric}, &out,
            &source);
        status = lac_export_finish(&out);
        if (status == LAC_ERR_IO) {
            status = fail_writing(reterr);
        } else if (status != LAC_OK) {
            (void)lac_fail(reterr, status, 0, "no memory for this file");
        }
    }
    lac_trace_file_release_model(download->file, model);
    if (fclose(file) != 0 && status == LAC_OK) {
        status = fail_writing(reterr);
    }
    return status;
}

static enum lac_status write_original(struct lac_app *app, const char *id,
                                      const struct download *download, struct lac_error *reterr)
{
    char original[LAC_SCRATCH_PATH_BYTES];
    uint8_t sha256[LAC_SHA256_SIZE];
    uint64_t size_bytes = 0;
    enum lac_status status =
        lac_store_original_path(app->store, id, original, sizeof(original), reterr);

    return status == LAC_OK
               ? lac_original_unpack(original, download->path, sha256, &size_bytes, reterr)
               : status;
}

static enum lac_status write_file(struct lac_app *app, const char *id,
                                  const struct download *download, struct lac_error *reterr)
{
    const struct lac_export_sqlite sqlite = {download->file, lac_export_sqlite_text,
                                             download->redactor};

    return download->form == SQLITE     ? lac_export_sqlite(&sqlite, download->path, reterr)
           : download->form == ORIGINAL ? write_original(app, id, download, reterr)
                                        : write_model(download, reterr);
}

/** Write it, take its name away, and answer with it. */
static void answer(struct lac_app *app, const struct lac_request *request,
                   struct download *download, struct lac_response *response)
{
    struct lac_error error = {0};
    struct stat made;
    enum lac_status status = LAC_OK;

    download->fd = lac_store_scratch(app->store, download->path, &error);
    if (download->fd < 0) {
        lac_api_fail(response, &error);
        return;
    }
    status = write_file(app, request->param[0], download, &error);
    (void)unlink(download->path);
    if (status == LAC_OK && fstat(download->fd, &made) != 0) {
        status = fail_writing(&error);
    }
    if (status == LAC_ERR_LIMIT) {
        lac_response_error(response, 413, "limit",
                           "this trace is too large for that here: `lacuna export` on the "
                           "server's machine writes it");
    } else if (status != LAC_OK) {
        lac_api_fail(response, &error);
    } else {
        response->mime = mimes[download->form];
        lac_response_header(response, "Content-Disposition", "attachment");
        lac_response_file(response, download->fd, (uint64_t)made.st_size);
        download->fd = -1;
        lac_api_note(app, request, "trace.export", "%s %s", request->param[0],
                     forms[download->form]);
    }
    if (download->fd >= 0) {
        (void)close(download->fd);
    }
}

/** One at a time: it may take the memory of a whole model. */
static atomic_bool is_under_way;

void lac_api_download(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_redactor redactor = {0};
    struct lac_error error = {0};
    struct download download = {.redactor = &redactor, .fd = -1};
    int form;

    download.file = lac_api_open_trace(app, request, response);
    if (download.file == NULL) {
        return;
    }
    const struct lac_model *head = lac_trace_file_head(download.file);
    const char *redact = lac_target_get(request->target, "redact");

    form = lac_api_choice(request, response, "to", forms, LAC_EXPORT_CHROME);
    download.metric = form < 0 ? -1
                               : lac_api_choice(request, response, "metric", lac_flame_metrics,
                                                (int)lac_export_metric(head));
    if (form < 0 || download.metric < 0) {
        /* the response says why */
    } else if (form == ORIGINAL && redact != NULL) {
        lac_response_error(response, 400, "bad_request",
                           "redact: the original is as it was uploaded; other forms leave out");
    } else if (lac_redactor_init(&redactor, redact, head, &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
    } else if (atomic_exchange(&is_under_way, true)) {
        lac_response_error(response, 503, "busy",
                           "another file is being written: try again in a moment");
        lac_response_header(response, "Retry-After", "2");
    } else {
        download.form = form;
        answer(app, request, &download, response);
        atomic_store(&is_under_way, false);
    }
    lac_redactor_done(&redactor);
    lac_store_release_trace(app->store, download.file);
}
