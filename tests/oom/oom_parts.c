/*
 * The n-th allocation fails, for every n: flame graphs, the simulated pipeline and the import of an
 * Nsight Systems export answer LAC_ERR_NOMEM and leave nothing behind (the leak check of the
 * sanitizer build sees the rest).
 */

#include "analysis/flame/flame.h"
#include "analysis/import/import.h"
#include "server/demo/pipeline.h"
#include "server/demo/truth.h"
#include "tests/support/oom.h"
#include "tests/support/rich_model.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what is tried ---- */

static struct lac_model *model;
static char export_path[64];

static enum lac_status draw(void *context)
{
    (void)context;
    enum lac_status status = LAC_OK;
    for (int metric = 0; metric < 3 && status == LAC_OK; metric++) {
        struct lac_flame_options options = {.metric = (enum lac_flame_metric)metric,
                                            .by = LAC_FLAME_BY_PYTHON};
        struct lac_flame *flame = NULL;
        status = lac_flame_create(model, &options, &flame);
        oom_require((flame != NULL) == (status == LAC_OK), "a failed graph was given");
        lac_flame_destroy(flame);
    }
    return status;
}

static enum lac_status simulate(void *context)
{
    (void)context;
    struct lac_demo_pipeline pipeline;
    struct lac_demo_run run;
    struct lac_demo_truth truth;
    lac_demo_pipeline_default(&pipeline);
    pipeline.warmup_steps = 1;
    pipeline.recorded_steps = 2;
    pipeline.copy_mode = LAC_DEMO_COPY_PREFETCH;
    enum lac_status status = lac_demo_simulate(&pipeline, &run, NULL);
    if (status == LAC_OK) {
        status = lac_demo_truth_of(&pipeline, &run, &truth, NULL);
        lac_demo_run_done(&run);
    }
    return status;
}

static enum lac_status keep(void *context, struct lac_model *given, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    lac_model_destroy(given);
    return LAC_OK;
}

static enum lac_status read_export(void *context)
{
    (void)context;
    struct lac_import_options options = {.name = "export"};
    struct lac_error error = {0};
    lac_import_limits_default(&options.limits);
    enum lac_status status = lac_import_file(export_path, &options, keep, NULL, &error);
    oom_require(status == LAC_OK || strlen(error.message) > 0, "an import failed without a word");
    return status;
}

static void make_export(void)
{
    static const char SQL[] =
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<3000) INSERT INTO "
        "StringIds SELECT x, 'name ' || x || CAST(x'ff' AS TEXT) FROM n;"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT id*10, id*10+5, id%3, id%5, id, "
        "(id%4)*16777216, id FROM StringIds;"
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER);"
        "INSERT INTO NVTX_EVENTS SELECT start, NULL, 59, 'aten::x, op_id = 1', start%300 FROM "
        "CUPTI_ACTIVITY_KIND_KERNEL WHERE start<2000;"
        "CREATE TABLE ThreadNames(nameId INTEGER, globalTid INTEGER);"
        "INSERT INTO ThreadNames VALUES(1,0),(2,1)";
    sqlite3 *db = NULL;
    (void)snprintf(export_path, sizeof(export_path), "/tmp/lac_oom_%d.sqlite", (int)getpid());
    (void)unlink(export_path);
    oom_require(sqlite3_open(export_path, &db) == SQLITE_OK, "no database");
    oom_require(sqlite3_exec(db, SQL, NULL, NULL, NULL) == SQLITE_OK, "no export");
    oom_require(sqlite3_close(db) == SQLITE_OK, "the export is not closed");
}

static uint64_t torture(const char *what, oom_part part, uint64_t stride)
{
    uint64_t tried = oom_each(what, part, NULL, stride);
    printf("ok: %s, out of memory in %llu places\n", what, (unsigned long long)tried);
    return tried;
}

int main(void)
{
    oom_require(rich_model_create(7, 300, &model) == LAC_OK, "no model");
    struct lac_derived_slice gaps[2] = {
        {.start_ns = 0, .dur_ns = 500, .name = 1, .link = LAC_NONE, .kind = LAC_SLICE_GAP},
        {.start_ns = 600, .dur_ns = 500, .name = 1, .link = LAC_NONE, .kind = LAC_SLICE_GAP}};
    for (uint32_t i = 0; i < model->slices.count; i++) {
        if (model->slices.kind[i] == LAC_SLICE_KERNEL && model->slices.link[i] != LAC_NONE) {
            gaps[1].link = i;
        }
    }
    oom_require(gaps[1].link != LAC_NONE, "no kernel that was launched");
    struct lac_track track = {.kind = LAC_TRACK_GAPS, .process = LAC_NONE};
    oom_require(lac_model_add_track(model, &track, gaps, 2) == LAC_OK, "no gaps");
    make_export();
    uint64_t passed = torture("flame", draw, 1);
    passed += torture("simulation", simulate, 1);
    passed += torture("Nsight Systems export", read_export, 17);
    lac_model_destroy(model);
    (void)unlink(export_path);
    printf("%llu passed, 0 failed\n", (unsigned long long)passed);
    return 0;
}
