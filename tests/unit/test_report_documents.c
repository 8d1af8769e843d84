/* Reports as documents: lines of parts, snapshots, Markdown that stays harmless, what is left out. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/reports/document.h"
#include "server/reports/markdown.h"
#include "server/reports/part.h"
#include "server/reports/snapshot.h"
#include "server/store/reports/report_store.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE "aaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TWO "bbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct lac_error error;

START_TEST(a_part_is_written_one_way)
{
    static const char *const rows[][2] = {
        {"window  to=20 from=10 trace=" ONE, "window trace=" ONE " from=10 to=20"},
        {"flame trace=" ONE "\r", "flame trace=" ONE},
        {"finding id=gpu-bound trace=" ONE, "finding trace=" ONE " id=gpu-bound"},
        {"table\ttrace=" ONE " of=idle", "table trace=" ONE " of=idle"},
        {"compare a=" ONE " b=" TWO, "compare a=" ONE " b=" TWO},
        {"series traces=" ONE "," TWO " of=rate", "series traces=" ONE "," TWO " of=rate"},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        struct lac_report_part part;
        char line[LAC_REPORT_PART_BYTES];

        ck_assert_msg(lac_part_read(rows[i][0], &part, &error) == LAC_OK, "%s: %s", rows[i][0],
                      error.message);
        lac_part_line(&part, line, sizeof(line));
        ck_assert_str_eq(line, rows[i][1]);
        ck_assert_int_eq(lac_part_read(line, &part, &error), LAC_OK);
    }
}
END_TEST

START_TEST(what_is_no_part_is_told)
{
    static const char *const rows[] = {
        "",
        "picture trace=" ONE,
        "window trace=" ONE,
        "window trace=" ONE " from=5 to=5",
        "window trace=" ONE " from=-1 to=5",
        "window trace=" ONE " from=0 to=99999999999999999999",
        "flame",
        "flame trace=no",
        "flame trace=" ONE " " ONE,
        "finding trace=" ONE " id=a/b",
        "table trace=" ONE " of=secrets",
        "compare a=" ONE,
        "series traces=" ONE " of=step",
        "flame trace=" ONE " color=red",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        struct lac_report_part part;

        ck_assert_msg(lac_part_read(rows[i], &part, &error) == LAC_ERR_CORRUPT, "%s", rows[i]);
        ck_assert_int_gt((int)strlen(error.message), 10);
    }
}
END_TEST

/** The longest line there can be fits: all traces of a series. */
START_TEST(the_longest_part_fits)
{
    struct lac_buffer line = {0};
    char again[LAC_REPORT_PART_BYTES];
    struct lac_report_part part;

    for (int i = 0; i < LAC_PART_TRACES_MAX; i++) {
        lac_buffer_puts(&line, i > 0 ? "," ONE : "series traces=" ONE);
    }
    lac_buffer_puts(&line, " of=not_computing");
    ck_assert_int_eq(line.status, LAC_OK);
    ck_assert_int_eq(lac_part_read(line.bytes, &part, &error), LAC_OK);
    lac_part_line(&part, again, sizeof(again));
    ck_assert_str_eq(again, line.bytes);
    lac_buffer_done(&line);
}
END_TEST

static char *html_of(const char *markdown)
{
    struct lac_buffer out = {0};

    ck_assert_int_eq(lac_markdown_html(&out, markdown, strlen(markdown), NULL, NULL, &error),
                     LAC_OK);
    ck_assert_int_eq(out.status, LAC_OK);
    return out.bytes != NULL ? out.bytes : calloc(1, 1);
}

START_TEST(markdown_has_what_reports_need)
{
    static const char *const rows[][2] = {
        {"# A\n\n## B", "<h2>A</h2>\n<h3>B</h3>\n"},
        {"a *b* **c** ~~d~~ `e`",
         "<p>a <em>b</em> <strong>c</strong> <s>d</s> <code>e</code></p>\n"},
        {"3. a\n4. b", "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n"},
        {"| a |\n| --- |\n| b |",
         "<table><tr><th>a</th>\n</tr>\n<tr><td>b</td>\n</tr>\n</table>\n"},
        {"| a | b | c |\n| ---: | :-: | :-- |\n| d | e | f |",
         "<table><tr><th class=\"right\">a</th>\n<th class=\"center\">b</th>\n<th>c</th>\n</tr>\n"
         "<tr><td class=\"right\">d</td>\n<td "
         "class=\"center\">e</td>\n<td>f</td>\n</tr>\n</table>\n"},
        {"- [x] a\n- [ ] b",
         "<ul><li class=\"task\">\u2611\ufe0e a</li>\n<li class=\"task\">\u2610\ufe0e "
         "b</li>\n</ul>\n"},
        {"> a", "<blockquote><p>a</p>\n</blockquote>\n"},
        {"    <b>", "<pre>&lt;b&gt;\n</pre>\n"},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        char *html = html_of(rows[i][0]);

        ck_assert_str_eq(html, rows[i][1]);
        free(html);
    }
}
END_TEST

START_TEST(nothing_active_comes_out_of_markdown)
{
    static const char *const rows[] = {
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "[a](javascript:alert(1))",
        "[a](JAVASCRIPT:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html,x)",
        "[a](//example.org)",
        "<javascript:alert(1)>",
        "![a](https://example.org/x.png)",
        "[a]: javascript:x\n\n[a]",
        "[x](\"onclick=alert(1))",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        char *html = html_of(rows[i]);

        ck_assert_msg(strstr(html, "<script") == NULL && strstr(html, "<img") == NULL &&
                          strstr(html, "href") == NULL,
                      "%s: %s", rows[i], html);
        free(html);
    }
    char *html = html_of("[a](https://example.org/?q=\"onmouseover=x)");

    ck_assert_ptr_nonnull(strstr(html, "href=\"https://example.org/"));
    ck_assert_ptr_null(strstr(html, "\"onmouseover"));
    free(html);
}
END_TEST

START_TEST(too_much_markup_is_refused)
{
    const size_t size = (size_t)1 << 20;
    char *text = malloc(size);
    struct lac_buffer out = {0};

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < size; i++) {
        text[i] = "*a "[i % 3];
    }
    ck_assert_int_eq(lac_markdown_html(&out, text, size, NULL, NULL, &error), LAC_ERR_LIMIT);
    lac_buffer_done(&out);
    /* and the next one is as if nothing had been */
    char *html = html_of("*a*");

    ck_assert_str_eq(html, "<p><em>a</em></p>\n");
    free(html);
    free(text);
}
END_TEST

static char *snapshot_of(void *context, const struct lac_report_part *part, const char *line,
                         char *why, size_t why_capacity)
{
    struct lac_buffer out = {0};

    (void)context;
    (void)line;
    if (part->kind == LAC_PART_FLAME) {
        (void)snprintf(why, why_capacity, "not here");
        return NULL;
    }
    lac_snapshot_line(&out, "host", "w", "node17");
    lac_snapshot_line(&out, "title", "t", "on node17\tof </section> \\ /home/kim/run/train.py");
    lac_snapshot_line(&out, "fact", "wa", "Ran", "python train.py --key=abc");
    lac_snapshot_line(&out, "columns", "tt", "a", "b|c");
    lac_snapshot_line(&out, "row", "tg", "<b>", "my_range");
    lac_snapshot_line(&out, "row", "tt", "1421", "1421 ms");
    lac_snapshot_line(&out, "row", "tt", "c", "void at::native::elementwise");
    lac_snapshot_line(&out, "fact", "wt", "Note", "below");
    lac_snapshot_line(&out, "picture", "iiw", (int64_t)1000, (int64_t)100, "timeline");
    lac_snapshot_line(&out, "track", "ti", "GPU 0", (int64_t)2);
    lac_snapshot_line(&out, "box", "iiiwt", (int64_t)1, (int64_t)100, (int64_t)500, "busy", "gemm");
    lac_snapshot_line(&out, "box", "iiiwt", (int64_t)0, (int64_t)0, (int64_t)9, "x\"y", "never");
    lac_snapshot_line(&out, "box", "iiiwt", (int64_t)7, (int64_t)0, (int64_t)9, "busy", "never");
    return out.bytes;
}

static void document_of(struct lac_buffer *out, const char *redact, bool is_markdown)
{
    struct lac_redactor redactor;
    const struct lac_document document = {
        .title = "Ran by @kim on node17",
        .markdown = "See https://pytorch.org/docs/stable/x.html and http://node17/a/b/c.\n\n"
                    "`$ python x.py --key=abc` at /home/kim/a/b\n\n```lacuna\nflame trace=" ONE
                    "\ntable trace=" ONE " of=idle\nnonsense\n```\n",
        .evidence = snapshot_of,
        .redactor = &redactor};

    ck_assert_int_eq(lac_redactor_init_hosts(&redactor, redact, "node17\nnode18\n", &error),
                     LAC_OK);
    if (is_markdown) {
        lac_document_markdown(out, &document);
    } else {
        ck_assert_int_eq(lac_document_html(out, &document, true, &error), LAC_OK);
    }
    ck_assert_int_eq(out->status, LAC_OK);
    lac_redactor_done(&redactor);
}

START_TEST(a_document_leaves_out_what_it_must)
{
    static const char *const secrets[] = {"kim", "node17", "abc", "/home"};

    for (int form = 0; form < 2; form++) {
        struct lac_buffer out = {0};
        struct lac_buffer whole = {0};

        document_of(&out, "hosts,users,paths,argv", form == 1);
        document_of(&whole, NULL, form == 1);
        for (size_t i = 0; i < LAC_COUNT_OF(secrets); i++) {
            ck_assert_msg(strstr(out.bytes, secrets[i]) == NULL, "%s in %s", secrets[i], out.bytes);
            ck_assert_ptr_nonnull(strstr(whole.bytes, secrets[i]));
        }
        ck_assert_ptr_nonnull(strstr(out.bytes, "https://pytorch.org/docs/stable/x.html"));
        ck_assert_ptr_nonnull(strstr(out.bytes, "train.py"));
        lac_buffer_done(&out);
        lac_buffer_done(&whole);
    }
}
END_TEST

START_TEST(a_snapshot_is_drawn_and_says_what_is_missing)
{
    struct lac_buffer out = {0};

    document_of(&out, NULL, false);
    ck_assert_ptr_nonnull(strstr(out.bytes, "of &lt;/section&gt; \\ /home"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "<td>&lt;b&gt;</td><td class=\"whole\">my_range</td>"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "<td>1421</td><td class=\"number\">1421 ms</td>"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "<td>c</td><td>void at"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "width=\"359.8\" height=\"15\" class=\"busy\""));
    ck_assert_ptr_nonnull(strstr(out.bytes, "not here"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "a part begins with"));
    ck_assert_ptr_null(strstr(out.bytes, "never"));
    lac_buffer_done(&out);
    document_of(&out, NULL, true);
    ck_assert_ptr_nonnull(
        strstr(out.bytes, "abc\n\n| a | b\\|c |\n| --- | --- |\n| \\<b\\> | my\\_range |\n"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "elementwise |\n\n- Note: below\n\n*(picture: "));
    lac_buffer_done(&out);
}
END_TEST

static void count_part(void *context, const struct lac_report_part *part, const char *line)
{
    (void)part;
    ck_assert_ptr_nonnull(line);
    ++*(int *)context;
}

START_TEST(parts_are_found_once)
{
    int count = 0;

    ck_assert_int_eq(lac_document_parts("```lacuna\nflame trace=" ONE "\nflame  trace=" ONE
                                        "\n```\n\n```\nflame trace=" TWO "\n```\n",
                                        count_part, &count, &error),
                     LAC_OK);
    ck_assert_int_eq(count, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_documents");
    TCase *tests = tcase_create("documents");

    tcase_add_test(tests, a_part_is_written_one_way);
    tcase_add_test(tests, what_is_no_part_is_told);
    tcase_add_test(tests, the_longest_part_fits);
    tcase_add_test(tests, markdown_has_what_reports_need);
    tcase_add_test(tests, nothing_active_comes_out_of_markdown);
    tcase_add_test(tests, too_much_markup_is_refused);
    tcase_add_test(tests, a_document_leaves_out_what_it_must);
    tcase_add_test(tests, a_snapshot_is_drawn_and_says_what_is_missing);
    tcase_add_test(tests, parts_are_found_once);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
