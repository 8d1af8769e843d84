#include "server/store/trace_facts.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/io_full.h"
#include "server/store/catalog.h"
#include "server/store/store.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FACTS_BYTES_MAX = 8 << 20, FOOTER_BYTES = 32, LIST_MAX = 256, REPORT_LINES = 64 };

static const char first_line[] = "lacuna-facts 1\n";
static const char footer_magic[8] = {'L', 'A', 'C', 'F', 'A', 'C', 'T', 'S'};

/* -- the members, in one table for both ways ----------------------------------------------------*/

enum member_type { TEXT, TEXT_IN, I64, U64, U32, I32, FLAG, REAL, LETTER };

static const struct member {
    const char *key;
    enum member_type type;
    size_t offset;   /**< in struct lac_trace_facts */
    size_t capacity; /**< of TEXT_IN */
} members[] = {
#define ROW(name_, type_)                                                                          \
    {                                                                                              \
#name_, type_, offsetof(struct lac_trace_facts, row.name_), 0                              \
    }
#define ROW_TEXT(name_)                                                                            \
    {                                                                                              \
#name_, TEXT_IN, offsetof(struct lac_trace_facts, row.name_),                              \
            sizeof(((struct lac_trace_facts *)0)->row.name_)                                       \
    }
    ROW_TEXT(id),
    ROW(name, TEXT),
    ROW(project, TEXT),
    ROW_TEXT(run),
    {"run_name", TEXT, offsetof(struct lac_trace_facts, run_name), 0},
    {"run_created_ms", I64, offsetof(struct lac_trace_facts, run_created_ms), 0},
    ROW(created_unix_ms, I64),
    ROW(size_bytes, U64),
    ROW(generation, U32),
    ROW(format, TEXT),
    ROW(event_count, U64),
    ROW(slice_count, U64),
    ROW(dropped_count, U64),
    ROW(repaired_count, U64),
    ROW(duration_ns, I64),
    ROW(t0_ns, I64),
    ROW(has_clock, FLAG),
    ROW(clock_offset_ns, I64),
    ROW(clock_error_ns, I64),
    ROW(rank, I32),
    ROW(host, TEXT),
    ROW(is_simulated, FLAG),
    ROW(device_count, U32),
    ROW(device_names, TEXT),
    ROW(file_bytes, U64),
    ROW(summary.present, FLAG),
    ROW_TEXT(summary.cause),
    ROW(summary.letter, LETTER),
    ROW_TEXT(summary.text),
    ROW(summary.step_mean_ns, I64),
    ROW(summary.throughput_per_s, REAL),
    ROW_TEXT(summary.throughput_unit),
    ROW(summary.not_computing_pct, REAL),
    ROW_TEXT(summary.next_change),
    ROW(summary.gain_low_pct, REAL),
    ROW(summary.gain_mid_pct, REAL),
    ROW(summary.gain_high_pct, REAL),
    ROW_TEXT(summary.finding_id),
    ROW_TEXT(summary.model),
    {"original", TEXT_IN, offsetof(struct lac_trace_facts, original), LAC_ID_SIZE},
#undef ROW
#undef ROW_TEXT
    /* not in the catalog */
    {"upload", TEXT_IN, offsetof(struct lac_trace_facts, upload), LAC_ID_SIZE},
    {"ordinal", U32, offsetof(struct lac_trace_facts, ordinal), 0},
    {"upload_count", U32, offsetof(struct lac_trace_facts, upload_count), 0},
};

enum { MEMBER_COUNT = LAC_COUNT_OF(members), CATALOG_MEMBER_COUNT = MEMBER_COUNT - 3 };

void lac_trace_facts_done(struct lac_trace_facts *facts)
{
    lac_trace_row_done(&facts->row);
    free(facts->run_name);
    free(facts->findings);
    *facts = (struct lac_trace_facts){0};
}

/* -- writing ------------------------------------------------------------------------------------*/

static void put_text(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at < ' ' || *at == '%' || *at == 0x7F) {
            (void)fprintf(out, "%%%02X", *at);
        } else {
            (void)putc(*at, out);
        }
    }
}

/** Bits, so that it comes back as it was; nothing where it is not known. */
static void put_real(FILE *out, double value)
{
    uint64_t bits;

    if (isnan(value)) {
        return;
    }
    value = value == 0 ? 0 : value; /* SQLite keeps no sign of zero */
    memcpy(&bits, &value, sizeof(bits));
    (void)fprintf(out, "%016" PRIx64, bits);
}

static void put_member(FILE *out, const struct member *member, const void *at)
{
    switch (member->type) {
    case TEXT:
        put_text(out, *(char *const *)at);
        break;
    case TEXT_IN:
        put_text(out, at);
        break;
    case I64:
        (void)fprintf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case U64:
        (void)fprintf(out, "%" PRIu64, *(const uint64_t *)at);
        break;
    case U32:
        (void)fprintf(out, "%" PRIu32, *(const uint32_t *)at);
        break;
    case I32:
        (void)fprintf(out, "%" PRId32, *(const int32_t *)at);
        break;
    case FLAG:
        (void)putc(*(const bool *)at ? '1' : '0', out);
        break;
    case REAL:
        put_real(out, *(const double *)at);
        break;
    case LETTER:
        if (*(const char *)at != '\0') {
            (void)putc(*(const char *)at, out);
        }
        break;
    }
}

static void put_lists(FILE *out, const struct lac_trace_facts *facts)
{
    if (facts->row.has_sha256) {
        char text[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)];

        lac_hex_encode(facts->row.sha256, sizeof(facts->row.sha256), text);
        (void)fprintf(out, "sha256 %s\n", text);
    }
    /* as many as the catalog gives back */
    for (uint32_t i = 0; i < facts->row.report_count && i < REPORT_LINES; i++) {
        const struct lac_trace_report_line *line = &facts->row.report[i];

        (void)fputs("report ", out);
        put_text(out, line->code);
        (void)fprintf(out, "\t%d\t%" PRIu64 "\t%" PRIu64 "\t", line->severity, line->count,
                      line->first_offset_bytes);
        put_text(out, line->text);
        (void)putc('\n', out);
    }
    for (uint32_t i = 0; i < facts->finding_count; i++) {
        const struct lac_finding_row *finding = &facts->findings[i];
        const double reals[] = {finding->cost_pct, finding->gain_low_pct, finding->gain_mid_pct,
                                finding->gain_high_pct, finding->confidence};

        (void)fputs("finding ", out);
        put_text(out, finding->finding_id);
        (void)putc('\t', out);
        put_text(out, finding->severity);
        (void)putc('\t', out);
        if (finding->has_cost_ns) {
            (void)fprintf(out, "%" PRId64, finding->cost_ns_per_step);
        }
        for (unsigned r = 0; r < LAC_COUNT_OF(reals); r++) {
            (void)putc('\t', out);
            put_real(out, reals[r]);
        }
        (void)putc('\t', out);
        put_text(out, finding->title);
        (void)putc('\n', out);
    }
}

enum lac_status lac_trace_facts_encode(const struct lac_trace_facts *facts, bool whole,
                                       char **ret_text, size_t *ret_size_bytes,
                                       struct lac_error *reterr)
{
    char *text = NULL;
    size_t size_bytes = 0;
    FILE *out = open_memstream(&text, &size_bytes);
    unsigned count = whole ? MEMBER_COUNT : CATALOG_MEMBER_COUNT;
    bool failed;

    if (out == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    (void)fputs(first_line, out);
    for (unsigned i = 0; i < count; i++) {
        const void *at = (const char *)facts + members[i].offset;

        if (members[i].type == TEXT && *(char *const *)at == NULL) {
            continue; /* not there is not empty */
        }
        (void)fprintf(out, "%s ", members[i].key);
        put_member(out, &members[i], at);
        (void)putc('\n', out);
    }
    put_lists(out, facts);
    failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    if (failed || text == NULL) {
        free(text);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (size_bytes > FACTS_BYTES_MAX) {
        free(text);
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the names in the trace are longer than %d MiB",
                        FACTS_BYTES_MAX >> 20);
    }
    *ret_text = text;
    *ret_size_bytes = size_bytes;
    return LAC_OK;
}

/* -- reading ------------------------------------------------------------------------------------*/

/** In place: "%41" becomes "A". A zero byte cannot come out of it. */
static void unescape(char *text)
{
    char *out = text;

    while (*text != '\0') {
        if (text[0] == '%' && lac_hex_digit(text[1]) >= 0 && lac_hex_digit(text[2]) >= 0 &&
            lac_hex_digit(text[1]) * 16 + lac_hex_digit(text[2]) != 0) {
            *out++ = (char)(lac_hex_digit(text[1]) * 16 + lac_hex_digit(text[2]));
            text += 3;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

static double get_real(const char *text)
{
    uint64_t bits;
    double value;

    if (*text == '\0') {
        return (double)NAN;
    }
    bits = strtoull(text, NULL, 16);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static enum lac_status get_member(const struct member *member, void *at, char *value)
{
    switch (member->type) {
    case TEXT:
        unescape(value);
        free(*(char **)at);
        *(char **)at = strdup(value);
        return *(char **)at != NULL ? LAC_OK : LAC_ERR_NOMEM;
    case TEXT_IN:
        unescape(value);
        (void)snprintf(at, member->capacity, "%s", value);
        break;
    case I64:
        *(int64_t *)at = strtoll(value, NULL, 10);
        break;
    case U64:
        *(uint64_t *)at = strtoull(value, NULL, 10);
        break;
    case U32:
        *(uint32_t *)at = (uint32_t)strtoul(value, NULL, 10);
        break;
    case I32:
        *(int32_t *)at = (int32_t)strtol(value, NULL, 10);
        break;
    case FLAG:
        *(bool *)at = *value == '1';
        break;
    case REAL:
        *(double *)at = get_real(value);
        break;
    case LETTER:
        *(char *)at = *value;
        break;
    }
    return LAC_OK;
}

/** Split at tabs, in place. @return how many fields there are */
static unsigned split(char *value, char **fields, unsigned capacity)
{
    unsigned count = 0;

    while (count < capacity) {
        char *tab = strchr(value, '\t');

        fields[count++] = value;
        if (tab == NULL) {
            break;
        }
        *tab = '\0';
        value = tab + 1;
    }
    for (unsigned i = 0; i < count; i++) {
        unescape(fields[i]);
    }
    return count;
}

static enum lac_status get_report(struct lac_trace_row *row, char *value)
{
    char *fields[5];
    struct lac_trace_report_line *line;

    if (split(value, fields, 5) != 5 || row->report_count == LIST_MAX) {
        return LAC_ERR_CORRUPT;
    }
    if (row->report == NULL) {
        row->report = calloc(LIST_MAX, sizeof(*row->report));
        if (row->report == NULL) {
            return LAC_ERR_NOMEM;
        }
    }
    line = &row->report[row->report_count++];
    (void)snprintf(line->code, sizeof(line->code), "%s", fields[0]);
    line->severity = (int)strtol(fields[1], NULL, 10);
    line->count = strtoull(fields[2], NULL, 10);
    line->first_offset_bytes = strtoull(fields[3], NULL, 10);
    (void)snprintf(line->text, sizeof(line->text), "%s", fields[4]);
    return LAC_OK;
}

static enum lac_status get_finding(struct lac_trace_facts *facts, char *value)
{
    char *fields[9];
    struct lac_finding_row *finding;

    if (split(value, fields, 9) != 9 || facts->finding_count == LIST_MAX) {
        return LAC_ERR_CORRUPT;
    }
    if (facts->findings == NULL) {
        facts->findings = calloc(LIST_MAX, sizeof(*facts->findings));
        if (facts->findings == NULL) {
            return LAC_ERR_NOMEM;
        }
    }
    finding = &facts->findings[facts->finding_count++];
    (void)snprintf(finding->finding_id, sizeof(finding->finding_id), "%s", fields[0]);
    (void)snprintf(finding->severity, sizeof(finding->severity), "%s", fields[1]);
    finding->has_cost_ns = fields[2][0] != '\0';
    finding->cost_ns_per_step = strtoll(fields[2], NULL, 10);
    finding->cost_pct = get_real(fields[3]);
    finding->gain_low_pct = get_real(fields[4]);
    finding->gain_mid_pct = get_real(fields[5]);
    finding->gain_high_pct = get_real(fields[6]);
    finding->confidence = get_real(fields[7]);
    (void)snprintf(finding->title, sizeof(finding->title), "%s", fields[8]);
    return LAC_OK;
}

static enum lac_status get_sha256(struct lac_trace_row *row, const char *value)
{
    if (strlen(value) != (size_t)2 * LAC_SHA256_SIZE) {
        return LAC_ERR_CORRUPT;
    }
    for (size_t i = 0; i < LAC_SHA256_SIZE; i++) {
        int high = lac_hex_digit(value[2 * i]);
        int low = lac_hex_digit(value[2 * i + 1]);

        if (high < 0 || low < 0) {
            return LAC_ERR_CORRUPT;
        }
        row->sha256[i] = (uint8_t)(high * 16 + low);
    }
    row->has_sha256 = true;
    return LAC_OK;
}

static enum lac_status get_line(struct lac_trace_facts *facts, char *line)
{
    char *value = strchr(line, ' ');

    if (value == NULL) {
        return LAC_ERR_CORRUPT;
    }
    *value++ = '\0';
    if (strcmp(line, "sha256") == 0) {
        return get_sha256(&facts->row, value);
    }
    if (strcmp(line, "report") == 0) {
        return get_report(&facts->row, value);
    }
    if (strcmp(line, "finding") == 0) {
        return get_finding(facts, value);
    }
    for (unsigned i = 0; i < MEMBER_COUNT; i++) {
        if (strcmp(line, members[i].key) == 0) {
            return get_member(&members[i], (char *)facts + members[i].offset, value);
        }
    }
    return LAC_OK; /* of a newer version */
}

enum lac_status lac_trace_facts_decode(const char *text, size_t size_bytes,
                                       struct lac_trace_facts *ret_facts, struct lac_error *reterr)
{
    struct lac_trace_facts facts = {.row = {.state = LAC_TRACE_READY}};
    char *copy = malloc(size_bytes + 1);
    char *at = copy;
    enum lac_status status = copy != NULL ? LAC_OK : LAC_ERR_NOMEM;

    if (status == LAC_OK) {
        memcpy(copy, text, size_bytes);
        copy[size_bytes] = '\0';
        status = strncmp(copy, first_line, sizeof(first_line) - 1) == 0 ? LAC_OK : LAC_ERR_CORRUPT;
        at += status == LAC_OK ? sizeof(first_line) - 1 : 0;
    }
    while (status == LAC_OK && *at != '\0') {
        char *end = strchr(at, '\n');

        if (end == NULL) {
            status = LAC_ERR_CORRUPT;
            break;
        }
        *end = '\0';
        status = get_line(&facts, at);
        at = end + 1;
    }
    if (status == LAC_OK &&
        (!lac_store_id_is_valid(facts.row.id) || facts.row.name == NULL ||
         facts.row.project == NULL ||
         (facts.row.run[0] != '\0' && !lac_store_id_is_valid(facts.row.run)) ||
         (facts.original[0] != '\0' && !lac_store_id_is_valid(facts.original)))) {
        status = LAC_ERR_CORRUPT;
    }
    free(copy);
    if (status != LAC_OK) {
        lac_trace_facts_done(&facts);
        return lac_fail(reterr, status, 0,
                        status == LAC_ERR_NOMEM ? "out of memory" : "the facts are damaged");
    }
    *ret_facts = facts;
    return LAC_OK;
}

/* -- in the file --------------------------------------------------------------------------------*/

static void store_le(uint8_t *bytes, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t load_le(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static uint64_t sum_of(const uint8_t *footer, const void *text, size_t size_bytes)
{
    return lac_hash64(text, size_bytes, lac_hash64(footer, FOOTER_BYTES - 8, 0));
}

enum lac_status lac_facts_to(int fd, uint64_t offset, const struct lac_trace_facts *facts,
                             struct lac_error *reterr)
{
    uint8_t footer[FOOTER_BYTES] = {0};
    char *text = NULL;
    size_t size_bytes = 0;
    enum lac_status status = lac_trace_facts_encode(facts, true, &text, &size_bytes, reterr);

    if (status == LAC_OK) {
        memcpy(footer, footer_magic, sizeof(footer_magic));
        store_le(footer + 8, 1, 4);
        store_le(footer + 16, size_bytes, 8);
        store_le(footer + 24, sum_of(footer, text, size_bytes), 8);
        if (ftruncate(fd, (off_t)offset) != 0 || !lac_file_write_at(fd, text, size_bytes, offset) ||
            !lac_file_write_at(fd, footer, sizeof(footer), offset + size_bytes) || fsync(fd) != 0) {
            status =
                lac_fail(reterr, LAC_ERR_IO, 0, "cannot complete the file: %s", strerror(errno));
        }
    }
    free(text);
    return status;
}

enum lac_status lac_trace_facts_write(const char *path, const struct lac_trace_facts *facts,
                                      struct lac_error *reterr)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    uint64_t end = 0;
    enum lac_status status;

    if (fd < 0 || !lac_checked_end(fd, &end)) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot complete the trace file: %s", strerror(errno));
    } else {
        status = lac_facts_to(fd, end, facts, reterr);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static enum lac_status read_facts(int fd, const char *label, struct lac_trace_facts *ret_facts,
                                  struct lac_error *reterr)
{
    uint8_t footer[FOOTER_BYTES];
    struct stat info;
    uint64_t size_bytes;
    uint64_t end = 0;
    char *text;
    enum lac_status status;

    if (fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof(footer) ||
        !lac_file_read_at(fd, footer, sizeof(footer), (uint64_t)info.st_size - sizeof(footer)) ||
        memcmp(footer, footer_magic, sizeof(footer_magic)) != 0) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "%s holds no facts", label);
    }
    size_bytes = load_le(footer + 16, 8);
    if (size_bytes > FACTS_BYTES_MAX || size_bytes > (uint64_t)info.st_size - sizeof(footer)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s is damaged (its facts)", label);
    }
    end = (uint64_t)info.st_size - sizeof(footer) - size_bytes;
    text = malloc(size_bytes + 1);
    if (text == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (!lac_file_read_at(fd, text, size_bytes, end) ||
        load_le(footer + 24, 8) != sum_of(footer, text, size_bytes)) {
        status = LAC_ERR_CORRUPT;
    } else {
        status = lac_trace_facts_decode(text, size_bytes, ret_facts, reterr);
    }
    free(text);
    return status == LAC_ERR_CORRUPT
               ? lac_fail(reterr, LAC_ERR_CORRUPT, end, "%s is damaged (its facts)", label)
               : status;
}

enum lac_status lac_trace_facts_read(const char *path, struct lac_trace_facts *ret_facts,
                                     struct lac_error *reterr)
{
    char label[LAC_SQL_LABEL_BYTES];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    enum lac_status status;

    lac_sql_label(path, label, sizeof(label));
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot open %s: %s", label,
                          fd < 0 ? strerror(errno) : "it is not a file");
    } else {
        status = read_facts(fd, label, ret_facts, reterr);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}
