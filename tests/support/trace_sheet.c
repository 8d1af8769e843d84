#include "tests/support/trace_sheet.h"

#include "collector/base/count_of.h"
#include "tests/support/trace_draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct lac_model *model;
struct lac_analysis *analysis;
unsigned sheet_corr;

static char sheet[4 << 20];
static size_t used;

static void require(bool holds, const char *where, const char *what)
{
    if (!holds) {
        fprintf(stderr, "trace_sheet: %s: %s\n", where, what);
        abort();
    }
}

void sheet_blank(void)
{
    used = 0;
    sheet_corr = 0;
    sheet[0] = '\0';
}

void sheet_add(const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    int length = vsnprintf(sheet + used, sizeof(sheet) - used, fmt, list);
    va_end(list);
    require(length >= 0 && (size_t)length < sizeof(sheet) - used, fmt, "the sheet is full");
    used += (size_t)length;
}

const char *sheet_text(void)
{
    return sheet;
}

void sheet_wipe(void)
{
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
    analysis = NULL;
    model = NULL;
}

void sheet_diagnose(const char *metadata, int cc_major)
{
    sheet_wipe();
    model = trace_draw_with(sheet, metadata, cc_major);
    analysis = trace_diagnose(model);
}

void sheet_draw(const char *drawing)
{
    sheet_blank();
    sheet_add("%s", drawing);
    sheet_diagnose(NULL, 0);
}

const struct lac_finding *sheet_finding(const char *id)
{
    return trace_finding(analysis, id);
}

void sheet_check_grammar(const struct lac_finding *finding)
{
    const char *const parts[] = {finding->title, finding->why,     finding->change,
                                 finding->brief, finding->costs,   finding->expect,
                                 finding->check, finding->wrong_if};
    for (size_t i = 0; i < LAC_COUNT_OF(parts); i++) {
        require(parts[i][0] != '\0', finding->id, "a part is empty");
    }
    require(finding->evidence_count > 0, finding->id, "no evidence");
    require(finding->gain_low_pct <= finding->gain_mid_pct &&
                finding->gain_mid_pct <= finding->gain_high_pct,
            finding->id, "the gain is out of order");
}
