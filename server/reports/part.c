#include "server/reports/part.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"window", "flame", "finding", "table", "compare", "series"};
_Static_assert(LAC_COUNT_OF(kinds) == LAC_PART_KIND_COUNT_, "every kind has a word");

static const char *const tables[] = {"kernels", "idle", "plan", "settings"};
static const char *const series[] = {"step", "rate", "not_computing"};

const char *lac_part_kind_name(enum lac_part_kind kind)
{
    return kinds[kind];
}

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** Letters, digits and dashes, as ids of findings have. */
static bool is_plain(const char *word)
{
    return *word != '\0' && word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_")] == '\0';
}

static enum lac_status add_traces(struct lac_report_part *part, const char *value,
                                  struct lac_error *reterr)
{
    while (*value != '\0') {
        const size_t length = strcspn(value, ",");

        if (part->trace_count == LAC_PART_TRACES_MAX) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "more than %d traces", LAC_PART_TRACES_MAX);
        }
        char *id = part->trace[part->trace_count];

        (void)snprintf(id, LAC_ID_SIZE, "%.*s", (int)(length < LAC_ID_SIZE ? length : 0), value);
        if (!lac_store_id_is_valid(id)) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "'%.40s' is not the id of a trace", value);
        }
        part->trace_count++;
        value += length + (value[length] == ',');
    }
    return LAC_OK;
}

static enum lac_status read_time(const char *value, int64_t *ret_ns, struct lac_error *reterr)
{
    char *end = NULL;

    errno = 0;
    *ret_ns = strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || *ret_ns < 0) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        "'%.40s' is no time in ns since the trace's start", value);
    }
    return LAC_OK;
}

static enum lac_status set(struct lac_report_part *part, const char *key, const char *value,
                           struct lac_error *reterr)
{
    if (strcmp(key, "trace") == 0 || strcmp(key, "traces") == 0 || strcmp(key, "a") == 0 ||
        strcmp(key, "b") == 0) {
        return add_traces(part, value, reterr);
    }
    if (strcmp(key, "from") == 0) {
        return read_time(value, &part->from_ns, reterr);
    }
    if (strcmp(key, "to") == 0) {
        return read_time(value, &part->to_ns, reterr);
    }
    if (strcmp(key, "of") == 0 || strcmp(key, "id") == 0) {
        (void)snprintf(part->of, sizeof(part->of), "%s", value);
        return LAC_OK;
    }
    return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "a part has no '%.40s'", key);
}

/** Whether it says all that its kind needs, and nothing impossible. */
static enum lac_status check(const struct lac_report_part *part, struct lac_error *reterr)
{
    const unsigned count = part->trace_count;
    const char *wrong = NULL;

    if (part->kind == LAC_PART_COMPARE  ? count != 2
        : part->kind == LAC_PART_SERIES ? count < 2
                                        : count != 1) {
        wrong = part->kind == LAC_PART_COMPARE  ? "give two traces: compare a=ID b=ID"
                : part->kind == LAC_PART_SERIES ? "give two traces or more: series traces=ID,ID"
                                                : "give one trace: trace=ID";
    } else if (part->kind == LAC_PART_WINDOW && part->to_ns <= part->from_ns) {
        wrong = "give times in ns: window trace=ID from=0 to=1000000";
    } else if (part->kind == LAC_PART_FINDING && !is_plain(part->of)) {
        wrong = "name the finding: finding trace=ID id=input-starvation";
    } else if (part->kind == LAC_PART_TABLE && !is_one_of(part->of, tables, LAC_COUNT_OF(tables))) {
        wrong = "name the table: of=kernels, idle, plan or settings";
    } else if (part->kind == LAC_PART_SERIES &&
               !is_one_of(part->of, series, LAC_COUNT_OF(series))) {
        wrong = "name the measure: of=step, rate or not_computing";
    }
    return wrong == NULL ? LAC_OK : lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s", wrong);
}

enum lac_status lac_part_read(const char *line, struct lac_report_part *ret_part,
                              struct lac_error *reterr)
{
    char words[1024];
    char *rest = NULL;
    const char *word;
    unsigned kind = 0;
    enum lac_status status = LAC_OK;

    if (snprintf(words, sizeof(words), "%s", line) >= (int)sizeof(words)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "a part's line has at most 1023 bytes");
    }
    *ret_part = (struct lac_report_part){0};
    word = strtok_r(words, " \t\r", &rest);
    while (kind < LAC_PART_KIND_COUNT_ && (word == NULL || strcmp(word, kinds[kind]) != 0)) {
        kind++;
    }
    if (kind == LAC_PART_KIND_COUNT_) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        "a part begins with window, flame, finding, table, compare or series");
    }
    ret_part->kind = (enum lac_part_kind)kind;
    while (status == LAC_OK && (word = strtok_r(NULL, " \t\r", &rest)) != NULL) {
        char *value = strchr(word, '=');

        if (value == NULL) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "'%.40s' is not of the form name=value",
                            word);
        }
        *value = '\0';
        status = set(ret_part, word, value + 1, reterr);
    }
    return status == LAC_OK ? check(ret_part, reterr) : status;
}

void lac_part_line(const struct lac_report_part *part, char *out, size_t capacity_bytes)
{
    size_t used = 0;

    if (part->kind == LAC_PART_COMPARE) {
        (void)snprintf(out, capacity_bytes, "compare a=%s b=%s", part->trace[0], part->trace[1]);
        return;
    }
    for (unsigned i = 0; i < part->trace_count; i++) {
        const int wrote =
            i == 0 ? snprintf(out, capacity_bytes, "%s %s=%s", kinds[part->kind],
                              part->kind == LAC_PART_SERIES ? "traces" : "trace", part->trace[0])
                   : snprintf(out + used, capacity_bytes - used, ",%s", part->trace[i]);

        if (wrote < 0 || (size_t)wrote >= capacity_bytes - used) {
            return;
        }
        used += (size_t)wrote;
    }
    if (part->kind == LAC_PART_WINDOW) {
        (void)snprintf(out + used, capacity_bytes - used, " from=%" PRId64 " to=%" PRId64,
                       part->from_ns, part->to_ns);
    } else if (part->of[0] != '\0') {
        (void)snprintf(out + used, capacity_bytes - used, " %s=%s",
                       part->kind == LAC_PART_FINDING ? "id" : "of", part->of);
    }
}
