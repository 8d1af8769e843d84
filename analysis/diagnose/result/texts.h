#ifndef LAC_ANALYSIS_DIAGNOSE_TEXTS_H
#define LAC_ANALYSIS_DIAGNOSE_TEXTS_H

/*
 * Owner of an analysis' strings: formatted text that lives as long as the analysis, and how numbers
 * are said to people ("301 ms", "11 %").
 *
 * A failed allocation is remembered: lac_texts_failed() tells at the end, and until then the text
 * is "", so that callers need no check a line.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_text;

/** Format into the pool. Borrowed from it. Never NULL. */
const char *lac_texts_add(struct lac_text **pool, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Whether an allocation failed since the pool was made. */
bool lac_texts_failed(const struct lac_text *pool);

/** Free the pool and all its strings. NULL is allowed. */
void lac_texts_destroy(struct lac_text *pool);

/** A duration as a person says it: "301 ms", "1.5 s", "32 us", "12.3 s"; three digits at most
 *  below a thousand. */
enum { LAC_TEXT32_BYTES = 32 };
struct lac_text32 {
    char text[LAC_TEXT32_BYTES];
};
struct lac_text32 lac_format_ns(int64_t ns);
/** "11 %", "0.4 %", "less than 0.1 %". */
struct lac_text32 lac_format_pct(double pct);
/** "690", "1 110", "3.4": a rate, three digits. */
struct lac_text32 lac_format_rate(double per_s);
/** "154 MB", "64 KB". */
struct lac_text32 lac_format_bytes(int64_t bytes);
/** "10-13 %", and "11 %" when both ends read the same. */
struct lac_text32 lac_format_band(double low_pct, double high_pct);
/** "1 worker", "3 workers": "2 batches": regular plurals. */
struct lac_text32 lac_format_count(int64_t count, const char *thing);

#endif
