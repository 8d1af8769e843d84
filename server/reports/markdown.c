#include "server/reports/markdown.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/report.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- memory: the parser gets a limit, and one place to end where it has none left ---- */

enum { BLOCK_BYTES = 256 << 10, MEMORY_BYTES_MAX = 64 << 20, GRAIN = 16 };

struct block {
    struct block *next;
    alignas(GRAIN) char bytes[];
};

struct arena {
    struct block *blocks;
    char *free;
    size_t free_bytes;
    size_t used_bytes;
    jmp_buf out_of_memory;
};

static _Thread_local struct arena *current; /* cmark hands its functions no context */

static void arena_done(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
}

/** Each piece has its size before it, for realloc. Zeroed. */
static void *take(size_t size_bytes)
{
    struct arena *arena = current;
    const size_t need = GRAIN + (size_bytes + GRAIN - 1) / GRAIN * GRAIN;
    char *piece;

    if (size_bytes > MEMORY_BYTES_MAX || need > MEMORY_BYTES_MAX - arena->used_bytes) {
        longjmp(arena->out_of_memory, 1);
    }
    if (need > arena->free_bytes) {
        const size_t room = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        struct block *block = calloc(1, sizeof(*block) + room);

        if (block == NULL) {
            longjmp(arena->out_of_memory, 1);
        }
        block->next = arena->blocks;
        arena->blocks = block;
        arena->free = block->bytes;
        arena->free_bytes = room;
    }
    piece = arena->free;
    arena->free += need;
    arena->free_bytes -= need;
    arena->used_bytes += need;
    memcpy(piece, &size_bytes, sizeof(size_bytes));
    return piece + GRAIN;
}

static void *arena_calloc(size_t count, size_t size_bytes)
{
    if (size_bytes != 0 && count > MEMORY_BYTES_MAX / size_bytes) {
        longjmp(current->out_of_memory, 1);
    }
    return take(count * size_bytes);
}

static void *arena_realloc(void *old, size_t size_bytes)
{
    void *piece;
    size_t old_bytes = 0;

    if (old != NULL) {
        memcpy(&old_bytes, (char *)old - GRAIN, sizeof(old_bytes));
        if (size_bytes <= old_bytes) {
            return old;
        }
    }
    piece = take(size_bytes);
    if (old != NULL) {
        memcpy(piece, old, old_bytes);
    }
    return piece;
}

static void arena_free(void *piece)
{
    (void)piece; /* all at once */
}

static cmark_mem memory = {arena_calloc, arena_realloc, arena_free};

/* ---- HTML ---- */

struct writing {
    struct lac_buffer *out;
    lac_markdown_part_fn *part;
    void *context;
    bool is_in_head; /**< of a table */
    unsigned column; /**< of the row that we are in: the next cell's */
};

static void escape(struct writing *w, const char *text)
{
    if (text != NULL) {
        lac_html_escape(w->out, text, strlen(text));
    }
}

static bool is_harmless(const char *url)
{
    static const char *const schemes[] = {"http://", "https://", "mailto:", "#"};

    for (size_t i = 0; i < LAC_COUNT_OF(schemes); i++) {
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void begin_link(struct writing *w, cmark_node *node, bool is_begin)
{
    const char *url = cmark_node_get_url(node);

    if (url == NULL || !is_harmless(url)) {
        return;
    }
    if (is_begin) {
        lac_buffer_puts(w->out, "<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" "
                                "href=\"");
        escape(w, url);
        lac_buffer_puts(w->out, "\">");
    } else {
        lac_buffer_puts(w->out, "</a>");
    }
}

/** A picture that somebody else's server would be asked for: a link to it. */
static void begin_image(struct writing *w, cmark_node *node, bool is_begin)
{
    lac_buffer_puts(w->out, is_begin ? "<span class=\"note\">[picture: " : "]</span>");
    if (is_begin && cmark_node_first_child(node) == NULL) {
        escape(w, cmark_node_get_url(node));
    }
}

/** Lines of a block `lacuna`, one part each. */
static void write_parts(struct writing *w, const char *lines)
{
    while (lines != NULL && *lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        char line[1024];

        if (length > 0 && length < sizeof(line) && strspn(lines, " \t\r") < length) {
            memcpy(line, lines, length);
            line[length] = '\0';
            w->part(w->context, w->out, line);
        }
        lines += length + (lines[length] == '\n');
    }
}

static void write_code(struct writing *w, cmark_node *node)
{
    const char *info = cmark_node_get_fence_info(node);
    const char *text = cmark_node_get_literal(node);

    if (w->part != NULL && info != NULL && strcmp(info, "lacuna") == 0) {
        write_parts(w, text);
        return;
    }
    lac_buffer_puts(w->out, "<pre>");
    escape(w, text);
    lac_buffer_puts(w->out, "</pre>\n");
}

static bool is_tight(cmark_node *paragraph)
{
    cmark_node *item = cmark_node_parent(paragraph);
    cmark_node *list = item != NULL ? cmark_node_parent(item) : NULL;

    return list != NULL && cmark_node_get_type(list) == CMARK_NODE_LIST &&
           cmark_node_get_list_tight(list) != 0;
}

static void tag(struct writing *w, const char *name, bool is_begin)
{
    lac_buffer_printf(w->out, "<%s%s>%s", is_begin ? "" : "/", name,
                      is_begin || name[0] == 'e' || name[0] == 's' ? "" : "\n");
}

static void list_tag(struct writing *w, cmark_node *node, bool is_begin)
{
    const bool is_ordered = cmark_node_get_list_type(node) == CMARK_ORDERED_LIST;
    const int start = cmark_node_get_list_start(node);

    if (is_begin && is_ordered && start != 1) {
        lac_buffer_printf(w->out, "<ol start=\"%d\">\n", start);
    } else {
        tag(w, is_ordered ? "ol" : "ul", is_begin);
    }
}

static void item_tag(struct writing *w, cmark_node *node, bool is_begin)
{
    if (!is_begin || strcmp(cmark_node_get_type_string(node), "tasklist") != 0) {
        tag(w, "li", is_begin);
        return;
    }
    lac_buffer_puts(w->out, "<li class=\"task\">");
    lac_buffer_puts(w->out, cmark_gfm_extensions_get_tasklist_item_checked(node) ? "\u2611\ufe0e "
                                                                                 : "\u2610\ufe0e ");
}

static void begin_cell(struct writing *w, cmark_node *cell)
{
    cmark_node *table = cmark_node_parent(cmark_node_parent(cell));
    const uint8_t *sides = cmark_gfm_extensions_get_table_alignments(table);
    const unsigned column = w->column++;
    const bool is_known = sides != NULL && column < cmark_gfm_extensions_get_table_columns(table);

    lac_buffer_puts(w->out, w->is_in_head ? "<th" : "<td");
    if (is_known && (sides[column] == 'r' || sides[column] == 'c')) {
        lac_buffer_puts(w->out, sides[column] == 'r' ? " class=\"right\"" : " class=\"center\"");
    }
    lac_buffer_puts(w->out, ">");
}

/** What the extensions add. @return whether it was one of theirs */
static bool write_extension(struct writing *w, cmark_node *node, bool is_begin)
{
    const char *type = cmark_node_get_type_string(node);

    if (strcmp(type, "table") == 0) {
        tag(w, "table", is_begin);
    } else if (strcmp(type, "table_header") == 0 || strcmp(type, "table_row") == 0) {
        w->is_in_head = type[6] == 'h';
        w->column = 0;
        tag(w, "tr", is_begin);
    } else if (strcmp(type, "table_cell") == 0 && is_begin) {
        begin_cell(w, node);
    } else if (strcmp(type, "table_cell") == 0) {
        tag(w, w->is_in_head ? "th" : "td", is_begin);
    } else if (strcmp(type, "strikethrough") == 0) {
        tag(w, "s", is_begin);
    } else {
        return false;
    }
    return true;
}

static void write_inline(struct writing *w, cmark_node *node, bool is_begin)
{
    const cmark_node_type type = cmark_node_get_type(node);

    if (type == CMARK_NODE_TEXT || type == CMARK_NODE_HTML_INLINE) {
        escape(w, cmark_node_get_literal(node));
    } else if (type == CMARK_NODE_SOFTBREAK) {
        lac_buffer_puts(w->out, "\n");
    } else if (type == CMARK_NODE_LINEBREAK) {
        lac_buffer_puts(w->out, "<br>\n");
    } else if (type == CMARK_NODE_CODE) {
        lac_buffer_puts(w->out, "<code>");
        escape(w, cmark_node_get_literal(node));
        lac_buffer_puts(w->out, "</code>");
    } else if (type == CMARK_NODE_EMPH) {
        tag(w, "em", is_begin);
    } else if (type == CMARK_NODE_STRONG) {
        tag(w, "strong", is_begin);
    } else if (type == CMARK_NODE_LINK) {
        begin_link(w, node, is_begin);
    } else if (type == CMARK_NODE_IMAGE) {
        begin_image(w, node, is_begin);
    }
}

static void write_node(struct writing *w, cmark_node *node, bool is_begin)
{
    const cmark_node_type type = cmark_node_get_type(node);

    if (type == CMARK_NODE_HEADING) { /* the title is the first one */
        const int level = cmark_node_get_heading_level(node);
        const char name[3] = {'h', (char)('0' + (level < 5 ? level + 1 : 6)), '\0'};

        tag(w, name, is_begin);
    } else if (type == CMARK_NODE_PARAGRAPH) {
        if (!is_tight(node)) {
            tag(w, "p", is_begin);
        }
    } else if (type == CMARK_NODE_LIST) {
        list_tag(w, node, is_begin);
    } else if (type == CMARK_NODE_ITEM) {
        item_tag(w, node, is_begin);
    } else if (type == CMARK_NODE_BLOCK_QUOTE) {
        tag(w, "blockquote", is_begin);
    } else if (type == CMARK_NODE_CODE_BLOCK) {
        write_code(w, node);
    } else if (type == CMARK_NODE_HTML_BLOCK) {
        lac_buffer_puts(w->out, "<pre>");
        escape(w, cmark_node_get_literal(node));
        lac_buffer_puts(w->out, "</pre>\n");
    } else if (type == CMARK_NODE_THEMATIC_BREAK) {
        lac_buffer_puts(w->out, "<hr>\n");
    } else if (!write_extension(w, node, is_begin)) {
        write_inline(w, node, is_begin);
    }
}

/* ---- reading ---- */

static void register_extensions(void)
{
    cmark_gfm_core_extensions_ensure_registered();
}

static void read_and_write(struct writing *w, const char *text, size_t size_bytes)
{
    static const char *const wanted[] = {"table", "strikethrough", "tasklist"};
    cmark_parser *parser = cmark_parser_new_with_mem(CMARK_OPT_VALIDATE_UTF8, &memory);

    for (size_t i = 0; i < LAC_COUNT_OF(wanted); i++) {
        cmark_syntax_extension *extension = cmark_find_syntax_extension(wanted[i]);

        if (extension != NULL) {
            (void)cmark_parser_attach_syntax_extension(parser, extension);
        }
    }
    cmark_parser_feed(parser, text, size_bytes);

    cmark_node *root = cmark_parser_finish(parser);
    cmark_iter *iter = cmark_iter_new(root);
    cmark_event_type event;

    while ((event = cmark_iter_next(iter)) != CMARK_EVENT_DONE && w->out->status == LAC_OK) {
        write_node(w, cmark_iter_get_node(iter), event == CMARK_EVENT_ENTER);
    }
}

/** Apart, so that no variable of its caller is lost on the way out. */
static bool try_to_read(struct arena *arena, struct writing *w, const char *text, size_t size_bytes)
{
    if (setjmp(arena->out_of_memory) != 0) {
        return false;
    }
    read_and_write(w, text, size_bytes);
    return true;
}

enum lac_status lac_markdown_html(struct lac_buffer *out, const char *text, size_t size_bytes,
                                  lac_markdown_part_fn *part, void *context,
                                  struct lac_error *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct arena arena = {0};
    struct lac_buffer unsent = {0};
    struct writing w = {.out = out != NULL ? out : &unsent, .part = part, .context = context};

    (void)pthread_once(&once, register_extensions);
    current = &arena;

    const bool is_read = try_to_read(&arena, &w, text, size_bytes);

    current = NULL;
    arena_done(&arena);
    lac_buffer_done(&unsent);
    return is_read ? LAC_OK
                   : lac_fail(reterr, LAC_ERR_LIMIT, 0,
                              "the markup of this text takes too much memory");
}
