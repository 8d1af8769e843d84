/* Pictures of pixels: shapes with smooth edges, letters, PNG, and SVG that is cut or hostile. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/raster/canvas.h"
#include "server/export/raster/letters.h"
#include "server/export/raster/png.h"
#include "server/export/raster/svg_png.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <isa-l/igzip_lib.h>
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct lac_color white = {255, 255, 255};
static const struct lac_color black = {0, 0, 0};

static uint8_t gray_at(const struct lac_canvas *canvas, uint32_t x, uint32_t y)
{
    return canvas->rgb[3 * ((size_t)y * canvas->width_px + x)];
}

static struct lac_canvas canvas_of(double width, double height, double scale)
{
    struct lac_canvas canvas;

    ck_assert_int_eq(lac_canvas_init(&canvas, width, height, scale, white), LAC_OK);
    return canvas;
}

START_TEST(a_box_covers_what_it_covers)
{
    struct lac_canvas canvas = canvas_of(10, 10, 1);

    lac_canvas_fill(&canvas, 2.5, 3.0, 3.0, 2.0, black);
    ck_assert_uint_eq(gray_at(&canvas, 1, 3), 255);
    ck_assert_uint_eq(gray_at(&canvas, 2, 3), 128);
    ck_assert_uint_eq(gray_at(&canvas, 3, 3), 0);
    ck_assert_uint_eq(gray_at(&canvas, 5, 4), 128);
    ck_assert_uint_eq(gray_at(&canvas, 6, 4), 255);
    ck_assert_uint_eq(gray_at(&canvas, 3, 5), 255);
    /* beyond the edges, of no size, and no numbers */
    lac_canvas_fill(&canvas, -1e300, -1e300, 1e301, 1e301, black);
    ck_assert_uint_eq(gray_at(&canvas, 9, 9), 0);
    lac_canvas_fill(&canvas, 1, 1, -5, 1, white);
    lac_canvas_fill(&canvas, (double)NAN, 1, 5, (double)INFINITY, white);
    lac_canvas_line(&canvas, (double)NAN, 0, 5, -1e18, 2, black);
    lac_canvas_line(&canvas, -1e9, 5, 1e9, 5, 1, white);
    ck_assert_uint_eq(gray_at(&canvas, 0, 0), 0);
    lac_canvas_done(&canvas);
}
END_TEST

START_TEST(a_canvas_has_limits)
{
    static const double sides[][2] = {{0, 5},     {5, -1},          {1e9, 1},
                                      {1, 1e300}, {(double)NAN, 5}, {16384, 16384}};
    struct lac_canvas canvas;

    for (size_t i = 0; i < LAC_COUNT_OF(sides); i++) {
        ck_assert_int_eq(lac_canvas_init(&canvas, sides[i][0], sides[i][1], 1, white),
                         LAC_ERR_LIMIT);
        lac_canvas_done(&canvas);
    }
}
END_TEST

/** How much of a letter's box is inked. */
static unsigned ink_of(const char *text)
{
    struct lac_canvas canvas = canvas_of(20, 20, 2);
    unsigned ink = 0;

    lac_canvas_text(&canvas, 2, 14, 12, text, strlen(text), black);
    for (uint32_t y = 0; y < canvas.height_px; y++) {
        for (uint32_t x = 0; x < canvas.width_px; x++) {
            ink += 255u - gray_at(&canvas, x, y);
        }
    }
    lac_canvas_done(&canvas);
    return ink;
}

START_TEST(every_letter_is_written_and_differs)
{
    for (uint32_t a = '!'; a <= '~'; a++) {
        const char one[2] = {(char)a, '\0'};
        const char *strokes = lac_letter(a);
        const size_t length = strlen(strokes);

        ck_assert_uint_gt(length, 3);
        ck_assert_uint_eq(strspn(strokes, "0123456789abc "), length);
        ck_assert_uint_le(lac_letter_width(strokes), 8);
        ck_assert_uint_gt(ink_of(one), 255u * 3);
        for (uint32_t b = '!'; b < a; b++) {
            ck_assert_msg(strcmp(strokes, lac_letter(b)) != 0, "%c is %c", (int)a, (int)b);
        }
    }
    ck_assert_uint_eq(ink_of(" "), 0);
    ck_assert_str_eq(lac_letter(0x4e00), lac_letter(0x1f600)); /* a box */
    ck_assert_uint_gt(ink_of("\xe4\xb8\x80"), 255);
    ck_assert(lac_canvas_text_width("iii", 3, 12) < lac_canvas_text_width("mmm", 3, 12));
    ck_assert(lac_canvas_text_width("\xc2\xb7", 2, 12) < lac_canvas_text_width("mm", 2, 12));
    (void)ink_of("\xff\xf0\x80\xc2"); /* no UTF-8, and cut */
}
END_TEST

START_TEST(a_png_holds_the_pixels)
{
    struct lac_canvas canvas = canvas_of(37, 11, 1);
    struct lac_buffer out = {0};

    lac_canvas_line(&canvas, 1, 1, 30, 9, 2, (struct lac_color){200, 20, 90});
    ck_assert_int_eq(lac_png_write(&out, &canvas), LAC_OK);
    ck_assert_mem_eq(out.bytes, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x25\0\0\0\x0b\x08\x02\0\0\0",
                     29);
    ck_assert_mem_eq(out.bytes + out.size_bytes - 8, "IEND\xae\x42\x60\x82", 8);

    const size_t raw_bytes = (size_t)11 * (37 * 3 + 1);
    uint8_t *raw = malloc(raw_bytes);
    struct inflate_state inflate;

    ck_assert_ptr_nonnull(raw);
    isal_inflate_init(&inflate);
    inflate.crc_flag = IGZIP_ZLIB;
    inflate.next_in = (uint8_t *)out.bytes + 41;
    inflate.avail_in = (uint32_t)out.size_bytes - 41 - 16;
    inflate.next_out = raw;
    inflate.avail_out = (uint32_t)raw_bytes;
    ck_assert_int_eq(isal_inflate(&inflate), ISAL_DECOMP_OK);
    ck_assert_uint_eq(inflate.total_out, raw_bytes);
    for (uint32_t y = 0; y < 11; y++) {
        uint8_t *row = raw + y * (37 * 3 + 1);

        ck_assert_uint_eq(row[0], y > 0 ? 2 : 0);
        for (size_t i = 0; i < 37 * 3; i++) {
            row[1 + i] = (uint8_t)(row[1 + i] + (y > 0 ? row[1 + i - (37 * 3 + 1)] : 0));
            ck_assert_uint_eq(row[1 + i], canvas.rgb[y * 37 * 3 + i]);
        }
    }
    free(raw);
    lac_buffer_done(&out);
    lac_canvas_done(&canvas);
}
END_TEST

static const char drawing[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"x\" width=\"60\" "
    "height=\"30\" viewBox=\"0 0 60 30\">\n<style>:root{--ground:#fff;--ink:#102030;--c-a:#d0430c}"
    "@media screen and (prefers-color-scheme:dark){:root{--ground:#131518;--ink:#eceded;}}"
    "svg text{fill:var(--ink)}.x,.box{fill:var(--c-a);stroke:#0f0}.box+text{fill:#abc}.tick{"
    "stroke:var(--ink)}</style>\n<rect width=\"60\" height=\"30\" style=\"fill:var(--ground)\"/>\n"
    "<g transform=\"translate(2 3)\"><g><rect x=\"1.0\" y=\"1.0\" width=\"20\" height=\"9\" "
    "class=\"box\"/><title>a &lt;rect x=&quot;0&quot;&gt;</title><text x=\"4\" y=\"8\" "
    "class=\"in\">A&amp;&lt;&#39;</text></g><line x1=\"1\" x2=\"50\" y1=\"20\" y2=\"20\" "
    "class=\"tick\"/><text x=\"50\" y=\"18\" class=\"note\" text-anchor=\"end\">end</text></g>\n"
    "</svg>\n";

static enum lac_status painted(const char *svg, size_t size_bytes, bool is_dark,
                               struct lac_buffer *out)
{
    struct lac_error error = {0};

    return lac_png_of_svg(svg, size_bytes, is_dark, out, &error);
}

START_TEST(a_drawing_is_painted_in_light_and_dark)
{
    struct lac_buffer light = {0};
    struct lac_buffer dark = {0};
    struct lac_buffer again = {0};

    ck_assert_int_eq(painted(drawing, strlen(drawing), false, &light), LAC_OK);
    ck_assert_int_eq(painted(drawing, strlen(drawing), true, &dark), LAC_OK);
    ck_assert_int_eq(painted(drawing, strlen(drawing), false, &again), LAC_OK);
    ck_assert_mem_eq(light.bytes + 16, "\0\0\0\x78\0\0\0\x3c", 8);
    ck_assert(light.size_bytes != dark.size_bytes ||
              memcmp(light.bytes, dark.bytes, light.size_bytes) != 0);
    ck_assert_uint_eq(light.size_bytes, again.size_bytes);
    ck_assert_mem_eq(light.bytes, again.bytes, light.size_bytes);
    lac_buffer_done(&light);
    lac_buffer_done(&dark);
    lac_buffer_done(&again);
}
END_TEST

/** A copy of exact size with its NUL, so that the sanitizer sees a step beyond it. */
static void try_painting(const char *svg, size_t size_bytes)
{
    char *copy = malloc(size_bytes + 1);
    struct lac_buffer out = {0};

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, svg, size_bytes);
    copy[size_bytes] = '\0';
    (void)painted(copy, size_bytes, size_bytes % 2 == 0, &out);
    lac_buffer_done(&out);
    free(copy);
}

START_TEST(what_is_cut_or_changed_ends_well)
{
    char changed[sizeof(drawing)];
    uint32_t random = 1;

    for (size_t size = 0; size < strlen(drawing); size++) {
        try_painting(drawing, size);
    }
    for (int round = 0; round < 3000; round++) {
        memcpy(changed, drawing, sizeof(drawing));
        for (int i = 0; i < 4; i++) {
            random = random * 1664525u + 1013904223u;
            changed[(random >> 8) % strlen(drawing)] = "<>\"{}&;#()-.90 x"[random >> 28];
        }
        try_painting(changed, strlen(drawing));
    }
}
END_TEST

/** What the heap held before must not show: the packer's tables begin empty, whatever was there. */
START_TEST(a_picture_is_the_same_bytes_whatever_the_heap_held)
{
    enum { ROUNDS = 40, HEAP_BYTES = 4 << 20 };
    struct lac_buffer first = {0};
    uint32_t seed = 1;

    /* fresh pages would all be 0 */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 28);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 28);
    for (int round = 0; round < ROUNDS; round++) {
        struct lac_canvas canvas;
        struct lac_buffer png = {0};
        uint16_t *garbage = malloc(HEAP_BYTES);

        ck_assert_ptr_nonnull(garbage);
        for (size_t i = 0; i < HEAP_BYTES / sizeof(*garbage); i++) {
            seed = seed * 1664525 + 1013904223;
            garbage[i] = (uint16_t)(seed >> 16);
        }
        __asm__ volatile(""
                         :
                         : "r"(garbage)
                         : "memory"); /* it is written, although nobody reads it */
        free(garbage);
        canvas = canvas_of(400, 300, 1);
        for (int i = 0; i < 300; i++) {
            const struct lac_color color = {(uint8_t)(i * 37), (uint8_t)(i * 91), (uint8_t)i};

            lac_canvas_fill(&canvas, i * 37 % 390, i * 91 % 290, 5 + i % 7, 3 + i % 5, color);
        }
        ck_assert_int_eq(lac_png_write(&png, &canvas), LAC_OK);
        lac_canvas_done(&canvas);
        if (round == 0) {
            first = png;
            continue;
        }
        ck_assert_uint_eq(png.size_bytes, first.size_bytes);
        ck_assert_mem_eq(png.bytes, first.bytes, png.size_bytes);
        lac_buffer_done(&png);
    }
    lac_buffer_done(&first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("raster");
    TCase *tests = tcase_create("raster");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_box_covers_what_it_covers);
    tcase_add_test(tests, a_canvas_has_limits);
    tcase_add_test(tests, every_letter_is_written_and_differs);
    tcase_add_test(tests, a_png_holds_the_pixels);
    tcase_add_test(tests, a_drawing_is_painted_in_light_and_dark);
    tcase_add_test(tests, what_is_cut_or_changed_ends_well);
    tcase_add_test(tests, a_picture_is_the_same_bytes_whatever_the_heap_held);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
