#include "server/reports/document.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/reports/markdown.h"
#include "server/reports/part.h"
#include "server/reports/snapshot.h"
#include "server/store/reports/report_store.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char style[] =
    ":root[data-theme=light]{color-scheme:light;--ground:#fff;--ink:#1a1c1f;--muted:#5d636b;"
    "--line:#e0ded8;--sunken:#f5f4f0;--bar:#c5cad0;--bar2:#aab1b9;--strong:#3c434b}"
    ":root[data-theme=dark]{color-scheme:dark;--ground:#131518;--ink:#eceded;--muted:#a4abb3;"
    "--line:#2f343a;--sunken:#1d2125;--bar:#4b535c;--bar2:#666f79;--strong:#c9ced4}"
    ".framed{padding:4px 2px 24px;max-width:none;background:transparent}"
    ".part{border:1px solid var(--line);border-radius:8px;padding:14px 18px;margin:16px 0;"
    "break-inside:avoid}.part h3{margin-top:2px}.part-facts{display:grid;"
    "grid-template-columns:104px 1fr;gap:4px 14px;margin:8px 0}.part-open{float:right;"
    "font-size:13px;margin:0 0 4px 12px}.part-none{color:var(--muted)}"
    "td:not(:first-child):not(:last-child){text-align:left}td:nth-child(2):last-child{text-align:"
    "left}h1+p{margin-top:0}.doc>h3{font-size:17px;margin:28px 0 8px}h4,h5,h6{font-size:15px;"
    "margin:22px 0 6px;break-after:avoid}.doc>table,.doc>pre{margin:12px 0}"
    "blockquote{margin:8px 0;padding:1px 14px;border-left:3px solid var(--line);"
    "color:var(--muted)}code{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "background:var(--sunken);border-radius:3px;padding:1px 4px}hr{border:0;border-top:1px solid "
    "var(--line);margin:24px 0}a{color:inherit}.part svg{overflow:hidden}"
    ".doc th,.doc td{text-align:left}.doc .right{text-align:right}.doc .center{text-align:center}"
    ".task{list-style:none;margin-left:-20px}.task>p{display:inline}"
    /* words of a table's later columns stay whole, numbers with their unit; a kernel's name breaks */
    ".doc .whole{overflow-wrap:normal}.doc .number{white-space:nowrap}"
    "@media(max-width:640px){.part{padding:10px 12px;overflow-x:auto}.part-facts{"
    "grid-template-columns:1fr;gap:2px}.part svg{min-width:560px}"
    ".part td,.part th{font-size:13px}.part td:not(:first-child),.part th:not(:first-child){"
    "padding-left:8px}.part td:first-child{min-width:88px}}";

void lac_document_style(struct lac_buffer *out)
{
    lac_report_style(out);
    lac_buffer_puts(out, style);
}

/* ---- what leaves ---- */

/** What people wrote, without what is to be left out. Lines that begin with "$ " are commands, and
 *  an @ before a name makes it a user's. Addresses of other sites stay whole: they are no paths. */
static void redact_line(struct lac_redactor *redactor, const char *line, struct lac_buffer *out);

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/** Length of an https address to a site with a dot in its name that is no number. */
static size_t link_length(const char *at)
{
    const size_t scheme = strncmp(at, "https://", 8) == 0  ? 8
                          : strncmp(at, "http://", 7) == 0 ? 7
                                                           : 0;
    const size_t site = strcspn(at + scheme, "/ \t()<>\"'");
    const char *dot = scheme > 0 ? memchr(at + scheme, '.', site) : NULL;

    if (dot == NULL || isdigit((unsigned char)at[scheme + site - 1]) ||
        memchr(at + scheme, ':', site) != NULL || memchr(at + scheme, '@', site) != NULL) {
        return 0;
    }
    return scheme + site + strcspn(at + scheme + site, " \t()<>\"'");
}

static void redact_piece(struct lac_redactor *redactor, const char *text, size_t length,
                         struct lac_buffer *out)
{
    char *piece = length > 0 ? strndup(text, length) : NULL;

    if (length > 0 && piece == NULL) {
        out->status = LAC_ERR_NOMEM;
    }
    if (piece != NULL) {
        lac_buffer_puts(out, lac_redact(redactor, piece));
    }
    free(piece);
}

static void redact_line(struct lac_redactor *redactor, const char *line, struct lac_buffer *out)
{
    const char *from = line;

    if (line[0] == '$' && line[1] == ' ') {
        lac_buffer_puts(out, "$ ");
        lac_buffer_puts(out, lac_redact_argv(redactor, line + 2));
        return;
    }
    for (const char *at = line; *at != '\0';) {
        if (strncmp(at, "`$ ", 3) == 0 &&
            strchr(at + 3, '`') != NULL) { /* a command in a sentence */
            const size_t command = strcspn(at + 3, "`");
            char *copy = strndup(at + 3, command);

            redact_piece(redactor, from, (size_t)(at + 3 - from), out);
            lac_buffer_puts(out, copy != NULL ? lac_redact_argv(redactor, copy) : "");
            free(copy);
            at += 3 + command;
            from = at;
            at++;
            continue;
        }
        const size_t link = at == line || !is_name(at[-1]) ? link_length(at) : 0;
        const bool is_user = *at == '@' && (at == line || !is_name(at[-1])) && is_name(at[1]);

        if (link == 0 && !is_user) {
            at++;
            continue;
        }
        redact_piece(redactor, from, (size_t)(at - from), out);
        if (link > 0) {
            lac_buffer_add(out, at, link);
            at += link;
        } else {
            char name[64];
            size_t length = 0;

            while (is_name(at[1 + length])) {
                length++;
            }
            while (length > 1 && at[length] == '.') { /* the end of the sentence */
                length--;
            }
            (void)snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), at + 1);
            lac_buffer_puts(out, "@");
            lac_buffer_puts(out, lac_redact_user(redactor, name));
            at += 1 + length;
        }
        from = at;
    }
    redact_piece(redactor, from, strlen(from), out);
}

static void redact_text(struct lac_redactor *redactor, const char *text, struct lac_buffer *out)
{
    while (*text != '\0' && out->status == LAC_OK) {
        const size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);

        if (line == NULL) {
            out->status = LAC_ERR_NOMEM;
            return;
        }
        redact_line(redactor, line, out);
        free(line);
        text += length;
        if (*text == '\n') {
            lac_buffer_puts(out, "\n");
            text++;
        }
    }
}

/* ---- parts ---- */

struct writing {
    const struct lac_document *document;
    unsigned part_count;
};

static void link_to(struct lac_buffer *out, const char *base, const struct lac_report_part *part)
{
    if (base == NULL || part->kind == LAC_PART_SERIES) {
        return;
    }
    lac_buffer_printf(out, "<p class=\"part-open\"><a target=\"_top\" href=\"");
    lac_html_escape(out, base, strlen(base));
    if (part->kind == LAC_PART_COMPARE) {
        lac_buffer_printf(out, "/compare?a=%s&amp;b=%s", part->trace[0], part->trace[1]);
    } else if (part->kind == LAC_PART_WINDOW) {
        lac_buffer_printf(out, "/t/%s?view=timeline&amp;v=%" PRId64 ",%" PRId64, part->trace[0],
                          part->from_ns, part->to_ns - part->from_ns);
    } else {
        lac_buffer_printf(out, "/t/%s%s", part->trace[0],
                          part->kind == LAC_PART_FLAME ? "?view=flame" : "");
    }
    lac_buffer_puts(out, "\">Open the trace</a></p>\n");
}

static void write_part(void *context, struct lac_buffer *out, const char *line)
{
    struct writing *w = context;
    const struct lac_document *document = w->document;
    struct lac_report_part part;
    struct lac_error error = {0};
    char canonical[LAC_REPORT_PART_BYTES];
    char why[256] = "";
    char *snapshot = NULL;

    if (++w->part_count > LAC_REPORT_PARTS_MAX) {
        lac_buffer_printf(out, "<p class=\"part-none\">A report shows at most %d parts.</p>\n",
                          LAC_REPORT_PARTS_MAX);
        return;
    }
    if (lac_part_read(line, &part, &error) == LAC_OK) {
        lac_part_line(&part, canonical, sizeof(canonical));
        snapshot = document->evidence(document->context, &part, canonical, why, sizeof(why));
    } else {
        (void)snprintf(why, sizeof(why), "%s", error.message);
    }
    if (snapshot == NULL) {
        lac_buffer_puts(out, "<section class=\"part part-none\"><p>");
        lac_html_escape(out, line, strlen(line));
        lac_buffer_puts(out, "<br>");
        lac_html_escape(out, why, strlen(why));
        lac_buffer_puts(out, "</p></section>\n");
        return;
    }
    lac_buffer_printf(out, "<section class=\"part part-%s\" id=\"part-%u\">\n",
                      lac_part_kind_name(part.kind), w->part_count);
    link_to(out, document->base_path, &part);
    lac_snapshot_html(out, snapshot, document->redactor);
    lac_buffer_puts(out, "</section>\n");
    free(snapshot);
}

/* ---- documents ---- */

static void head(struct lac_buffer *out, const char *title, const char *base, bool is_file)
{
    lac_buffer_puts(out,
                    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                    "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    if (is_file) {
        lac_buffer_puts(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                             "'none'; style-src 'unsafe-inline'; img-src data:\">\n");
    }
    lac_buffer_puts(out, "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"robots\" "
                         "content=\"noindex, nofollow\">\n<title>");
    lac_html_escape(out, title, strlen(title));
    if (is_file) {
        lac_buffer_puts(out, "</title>\n<style>");
        lac_document_style(out);
        lac_buffer_puts(out, "</style>\n</head>\n<body class=\"doc\">\n");
    } else {
        lac_buffer_puts(out, "</title>\n<link rel=\"stylesheet\" href=\"");
        lac_html_escape(out, base, strlen(base));
        lac_buffer_puts(out, "/report.css\">\n</head>\n<body class=\"doc framed\">\n");
    }
}

static void foot(struct lac_buffer *out, const struct lac_document *document)
{
    const time_t at_s = (time_t)(document->updated_unix_ms / 1000);
    struct tm at;
    char text[40];

    if (document->version > 0 && gmtime_r(&at_s, &at) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &at) > 0) {
        lac_buffer_printf(out, "<footer>Version %" PRId64 ", %s.</footer>\n", document->version,
                          text);
    }
}

enum lac_status lac_document_html(struct lac_buffer *out, const struct lac_document *document,
                                  bool is_file, struct lac_error *reterr)
{
    struct writing w = {.document = document};
    struct lac_buffer title = {0};
    struct lac_buffer text = {0};
    enum lac_status status;

    redact_text(document->redactor, document->title, &title);
    redact_text(document->redactor, document->markdown, &text);
    if (title.status != LAC_OK || text.status != LAC_OK) {
        out->status = LAC_ERR_NOMEM;
    }
    const char *name = title.bytes != NULL ? title.bytes : "";

    head(out, name, document->base_path != NULL ? document->base_path : "", is_file);
    lac_buffer_puts(out, "<h1>");
    lac_html_escape(out, name, strlen(name));
    lac_buffer_puts(out, "</h1>\n");
    status = lac_markdown_html(out, text.bytes != NULL ? text.bytes : "", text.size_bytes,
                               write_part, &w, reterr);
    foot(out, document);
    lac_buffer_puts(out, "</body>\n</html>\n");
    lac_buffer_done(&title);
    lac_buffer_done(&text);
    return status;
}

void lac_document_of_view(struct lac_buffer *out, const char *title, const char *snapshot,
                          struct lac_redactor *redactor)
{
    head(out, title, "", true);
    lac_buffer_puts(out, "<h1>");
    lac_html_escape(out, title, strlen(title));
    lac_buffer_puts(out, "</h1>\n<section class=\"part\">\n");
    lac_snapshot_html(out, snapshot, redactor);
    lac_buffer_puts(out, "</section>\n</body>\n</html>\n");
}

/** A line of a fence: up to three blanks, then backticks or tildes. @return how many, or 0 */
static size_t fence_of(const char *line, char *ret_char)
{
    const size_t indent = strspn(line, " ");
    const char c = line[indent];
    size_t count = 0;

    if (indent > 3 || (c != '`' && c != '~')) {
        return 0;
    }
    while (line[indent + count] == c) {
        count++;
    }
    *ret_char = c;
    return count >= 3 ? count : 0;
}

static void part_markdown(struct lac_buffer *out, const struct lac_document *document,
                          const char *line)
{
    struct lac_report_part part;
    struct lac_error error = {0};
    char canonical[LAC_REPORT_PART_BYTES];
    char why[256] = "";
    char *snapshot = NULL;

    if (line[strspn(line, " \t\r")] == '\0') {
        return;
    }
    if (lac_part_read(line, &part, &error) == LAC_OK) {
        lac_part_line(&part, canonical, sizeof(canonical));
        snapshot = document->evidence(document->context, &part, canonical, why, sizeof(why));
    }
    if (snapshot != NULL) {
        lac_snapshot_markdown(out, snapshot, document->redactor);
    } else {
        lac_buffer_printf(out, "`%s`\n\n", line);
    }
    free(snapshot);
}

void lac_document_markdown(struct lac_buffer *out, const struct lac_document *document)
{
    struct lac_buffer text = {0};
    char fence_char = 0;
    size_t fence = 0; /* of the block that we are in */
    bool is_ours = false;

    lac_buffer_puts(out, "# ");
    redact_text(document->redactor, document->title, out);
    lac_buffer_puts(out, "\n\n");
    redact_text(document->redactor, document->markdown, &text);
    out->status = text.status != LAC_OK ? text.status : out->status;
    for (char *at = text.bytes; at != NULL && *at != '\0' && out->status == LAC_OK;) {
        const size_t length = strcspn(at, "\n");
        const bool has_more = at[length] == '\n';
        char c = 0;

        at[length] = '\0';
        const size_t count = fence_of(at, &c);
        const bool ends = fence > 0 && c == fence_char && count >= fence;
        const bool begins = fence == 0 && count > 0;

        if (begins) {
            const char *info = at + strspn(at, " ") + count;

            fence = count;
            fence_char = c;
            is_ours = strncmp(info + strspn(info, " "), "lacuna", 6) == 0;
        }
        if (is_ours && !begins && !ends) {
            part_markdown(out, document, at);
        } else if (!is_ours) {
            lac_buffer_printf(out, "%s\n", at);
        }
        if (ends) {
            fence = 0;
            is_ours = false;
        }
        at += length + (has_more ? 1 : 0);
    }
    lac_buffer_done(&text);
}

/* ---- which parts ---- */

struct looking {
    lac_document_part_fn *visit;
    void *context;
    unsigned count;
    char seen[LAC_REPORT_PARTS_MAX][LAC_REPORT_PART_BYTES];
};

static void look(void *context, struct lac_buffer *out, const char *line)
{
    struct looking *looking = context;
    struct lac_report_part part;
    struct lac_error error = {0};
    char *canonical;

    (void)out;
    if (looking->count == LAC_REPORT_PARTS_MAX || lac_part_read(line, &part, &error) != LAC_OK) {
        return;
    }
    canonical = looking->seen[looking->count];
    lac_part_line(&part, canonical, LAC_REPORT_PART_BYTES);
    for (unsigned i = 0; i < looking->count; i++) {
        if (strcmp(looking->seen[i], canonical) == 0) {
            return;
        }
    }
    looking->count++;
    looking->visit(looking->context, &part, canonical);
}

enum lac_status lac_document_parts(const char *markdown, lac_document_part_fn *visit, void *context,
                                   struct lac_error *reterr)
{
    struct looking *looking = calloc(1, sizeof(*looking));
    enum lac_status status;

    if (looking == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    looking->visit = visit;
    looking->context = context;
    status = lac_markdown_html(NULL, markdown, strlen(markdown), look, looking, reterr);
    free(looking);
    return status;
}
