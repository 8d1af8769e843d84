#ifndef LAC_TESTS_SUPPORT_TRACE_SHEET_H
#define LAC_TESTS_SUPPORT_TRACE_SHEET_H

/*
 * A sheet on which a test draws a trace line by line (the language is trace_draw.h's), and what the
 * diagnosis makes of it: one drawing, one model, one analysis at a time, so that a test reads
 *
 *     sheet_blank();
 *     sheet_add("main range %d 1000 ProfilerStep#%d\n", i * 1000, i);
 *     sheet_diagnose(NULL, 8);
 *     ck_assert_ptr_null(sheet_finding("launch-bound"));
 *
 * with sheet_wipe as the fixture that ends each test.
 * Whatever goes wrong here says so and aborts: it is the test that is wrong.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"

/** Of the last sheet_diagnose or sheet_draw, until the next or sheet_wipe. */
extern struct lac_model *model;
extern struct lac_analysis *analysis;

/** The number that a call and its operation share: ++ before each pair; sheet_blank makes it 0. */
extern unsigned sheet_corr;

/** Nothing is drawn. */
void sheet_blank(void);

/** Draw on, as printf does. 4 MiB at most. */
void sheet_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** All that was drawn. */
const char *sheet_text(void);

/** Diagnose what was drawn; metadata and cc_major as trace_draw_with takes them. */
void sheet_diagnose(const char *metadata, int cc_major);

/** Blank, draw and diagnose at once. */
void sheet_draw(const char *drawing);

/** Destroy model and analysis; the drawing stays. */
void sheet_wipe(void);

/** The finding of that id, or NULL. */
const struct lac_finding *sheet_finding(const char *id);

/** A finding that proposes a change has every part of the grammar, evidence, and a
 *  gain in order. */
void sheet_check_grammar(const struct lac_finding *finding);

#endif
