/* B-trees of SQLite. Source: "Database File Format", sqlite.org/fileformat2.html */

#include "analysis/import/nsys/nsys_pages.h"

#include "collector/base/io_full.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LEVELS_MAX = 20, /* SQLite's own limit */
    FIELDS_MAX = 256,
    HEADER_BYTES = 100,
    PAGE_BYTES_MIN = 512,
    USABLE_MIN = 480,
    INTERIOR = 0x05,
    LEAF = 0x0d,
    UTF8 = 1,
};

/* A page on the way from the root to the row. */
struct level {
    uint8_t *bytes; /* NULL: not come to yet */
    uint32_t cell_count;
    uint32_t next; /* cell; of an interior page cell_count: the child behind the last cell */
    bool is_leaf;
};

struct lac_nsys_pages {
    int fd;
    uint32_t page_bytes;
    uint32_t usable; /* of a page */
    uint64_t page_count;
    uint64_t pages_left; /* that may be read: each belongs to one place, and few are read again */
    struct level levels[LEVELS_MAX];
    uint32_t depth; /* levels in use */
    uint32_t column_count;
    uint32_t field_count;           /* of a row, that are looked at */
    uint16_t column_of[FIELDS_MAX]; /* by field; UINT16_MAX: none asks for it */
    uint64_t value_bytes_max;
    uint8_t *long_row; /* a payload that goes on on other pages */
    size_t long_capacity;
};

static uint32_t u16_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t u32_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* SQLite's varint: up to 9 bytes, the last with 8 bits. @return its length; 0: it goes beyond `end` */
static unsigned varint_at(const uint8_t *at, const uint8_t *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (at < end && *at < 0x80) { /* nearly all */
        *ret_value = *at;
        return 1;
    }
    for (unsigned i = 0; i < 9 && at + i < end; i++) {
        if (i == 8) {
            *ret_value = value << 8 | at[i];
            return 9;
        }
        value = value << 7 | (at[i] & 0x7f);
        if (at[i] < 0x80) {
            *ret_value = value;
            return i + 1;
        }
    }
    return 0;
}

/* ---- pages ---- */

static enum lac_nsys_page_end read_page(struct lac_nsys_pages *pages, uint32_t number, uint8_t *to)
{
    if (number < 2 || number > pages->page_count) {
        return LAC_NSYS_PAGE_DAMAGED;
    }
    if (pages->pages_left == 0) {
        return LAC_NSYS_PAGE_CLAIMS;
    }
    pages->pages_left--;
    const int64_t got = lac_read_full_at(pages->fd, to, pages->page_bytes,
                                         (uint64_t)(number - 1) * pages->page_bytes);
    return got < 0                              ? LAC_NSYS_PAGE_READ
           : (uint64_t)got == pages->page_bytes ? LAC_NSYS_PAGE_ROW
                                                : LAC_NSYS_PAGE_DAMAGED;
}

/* One level down. */
static enum lac_nsys_page_end descend(struct lac_nsys_pages *pages, uint32_t number)
{
    if (pages->depth == LEVELS_MAX) {
        return LAC_NSYS_PAGE_DAMAGED;
    }
    struct level *const level = &pages->levels[pages->depth];
    level->bytes = level->bytes != NULL ? level->bytes : malloc(pages->page_bytes);
    if (level->bytes == NULL) {
        return LAC_NSYS_PAGE_NOMEM;
    }
    const enum lac_nsys_page_end end = read_page(pages, number, level->bytes);
    if (end != LAC_NSYS_PAGE_ROW) {
        return end;
    }
    const uint8_t type = level->bytes[0];
    level->is_leaf = type == LEAF;
    level->cell_count = u16_at(level->bytes + 3);
    level->next = 0;
    if ((type != LEAF && type != INTERIOR) ||
        (level->is_leaf ? 8U : 12U) + 2 * level->cell_count > pages->usable) {
        return LAC_NSYS_PAGE_DAMAGED;
    }
    pages->depth++;
    return LAC_NSYS_PAGE_ROW;
}

/* The next cell of a page; NULL: it lies where no cell can. */
static const uint8_t *next_cell(const struct lac_nsys_pages *pages, struct level *level)
{
    const uint32_t head = level->is_leaf ? 8 : 12;
    const uint32_t at = u16_at(level->bytes + head + 2 * (size_t)level->next++);
    /* the smallest cell has four bytes */
    return at >= head + 2 * level->cell_count && at + 4 <= pages->usable ? level->bytes + at : NULL;
}

/* To the next row's cell. */
static enum lac_nsys_page_end next_leaf_cell(struct lac_nsys_pages *pages, const uint8_t **ret_cell)
{
    while (pages->depth > 0) {
        struct level *const level = &pages->levels[pages->depth - 1];
        uint32_t child = 0;
        if (level->next > level->cell_count ||
            (level->is_leaf && level->next == level->cell_count)) {
            pages->depth--;
            continue;
        }
        if (level->next == level->cell_count) {
            child = u32_at(level->bytes + 8);
            level->next++;
        } else {
            const uint8_t *const cell = next_cell(pages, level);
            if (cell == NULL) {
                return LAC_NSYS_PAGE_DAMAGED;
            }
            if (level->is_leaf) {
                *ret_cell = cell;
                return LAC_NSYS_PAGE_ROW;
            }
            child = u32_at(cell);
        }
        const enum lac_nsys_page_end end = descend(pages, child);
        if (end != LAC_NSYS_PAGE_ROW) {
            return end;
        }
    }
    return LAC_NSYS_PAGE_DONE;
}

/* ---- rows ---- */

/* A row's bytes: `local` of them in its cell, the others on pages from `overflow` on. */
struct payload {
    const uint8_t *bytes; /* so many are at hand: */
    uint64_t at_hand;
    uint64_t size;
    const uint8_t *local_bytes;
    uint32_t local;
    uint32_t overflow; /* first page, 0 none */
};

static enum lac_nsys_page_end open_payload(const struct lac_nsys_pages *pages, const uint8_t *cell,
                                           struct payload *ret_payload)
{
    const uint8_t *const end = pages->levels[pages->depth - 1].bytes + pages->usable;
    const uint32_t usable = pages->usable;
    uint64_t size = 0;
    uint64_t row_number = 0;
    const unsigned a = varint_at(cell, end, &size);
    const unsigned b = a > 0 ? varint_at(cell + a, end, &row_number) : 0;
    if (b == 0 || size > UINT32_MAX) {
        return LAC_NSYS_PAGE_DAMAGED;
    }
    const uint8_t *const bytes = cell + a + b;
    uint32_t local = (uint32_t)size;
    if (size > usable - 35) {
        const uint32_t least = (usable - 12) * 32 / 255 - 23;
        local = least + (uint32_t)((size - least) % (usable - 4));
        local = local <= usable - 35 ? local : least;
    }
    const bool is_long = local < size;
    if ((uint64_t)(end - bytes) < (uint64_t)local + (is_long ? 4 : 0)) {
        return LAC_NSYS_PAGE_DAMAGED;
    }
    *ret_payload = (struct payload){.bytes = bytes,
                                    .at_hand = local,
                                    .size = size,
                                    .local_bytes = bytes,
                                    .local = local,
                                    .overflow = is_long ? u32_at(bytes + local) : 0};
    return LAC_NSYS_PAGE_ROW;
}

/* Have the first `size` bytes in one piece: those on other pages are fetched, again when the head
 * of a row alone had not been enough. */
static enum lac_nsys_page_end have(struct lac_nsys_pages *pages, struct payload *payload,
                                   uint64_t size)
{
    if (size <= payload->at_hand) {
        return LAC_NSYS_PAGE_ROW;
    }
    if (size > payload->size) {
        return LAC_NSYS_PAGE_DAMAGED;
    }
    /* a chain cannot be longer than the pages there are: no room for more is asked for */
    if ((size - payload->local) / pages->page_bytes > pages->pages_left) {
        return LAC_NSYS_PAGE_CLAIMS;
    }
    const size_t need = (size_t)size + pages->page_bytes;
    if (need > pages->long_capacity) {
        uint8_t *const wider = realloc(pages->long_row, need);
        if (wider == NULL) {
            return LAC_NSYS_PAGE_NOMEM;
        }
        pages->long_row = wider;
        pages->long_capacity = need;
    }
    memcpy(pages->long_row, payload->local_bytes, payload->local);
    uint32_t number = payload->overflow;
    for (uint64_t used = payload->local; used < size;) {
        uint8_t *const to = pages->long_row + used;
        uint8_t kept[4];
        memcpy(kept, to - 4, sizeof(kept)); /* what its number of the next page will lie on */
        const enum lac_nsys_page_end end = read_page(pages, number, to - 4);
        if (end != LAC_NSYS_PAGE_ROW) {
            return end;
        }
        number = u32_at(to - 4);
        memcpy(to - 4, kept, sizeof(kept));
        used += pages->usable - 4;
    }
    payload->bytes = pages->long_row;
    payload->at_hand = size;
    return LAC_NSYS_PAGE_ROW;
}

static uint64_t bytes_of_type(uint64_t type)
{
    static const uint8_t SIZE[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    return type < 12 ? SIZE[type] : (type - 12) / 2;
}

/* The fields of a row that are asked for. */
static enum lac_nsys_page_end take_fields(struct lac_nsys_pages *pages, struct payload *payload,
                                          struct lac_nsys_value *values)
{
    uint64_t head_size = 0;
    uint64_t offsets[FIELDS_MAX];
    unsigned at = varint_at(payload->bytes, payload->bytes + payload->at_hand, &head_size);
    enum lac_nsys_page_end end = LAC_NSYS_PAGE_DAMAGED;
    if (at == 0 || head_size < at || head_size > payload->size) {
        return payload->size == 0 ? LAC_NSYS_PAGE_ROW : end; /* a row without any field */
    }
    end = have(pages, payload, head_size);
    if (end != LAC_NSYS_PAGE_ROW) {
        return end;
    }
    uint64_t offset = head_size;
    uint64_t needed = head_size;
    memset(offsets, 0, pages->column_count * sizeof(offsets[0]));
    for (uint32_t field = 0; field < pages->field_count && at < head_size; field++) {
        uint64_t type = 0;
        const unsigned length = varint_at(payload->bytes + at, payload->bytes + head_size, &type);
        const uint64_t size = bytes_of_type(type);
        const uint16_t column = pages->column_of[field];
        if (length == 0 || size > payload->size - offset) {
            return LAC_NSYS_PAGE_DAMAGED;
        }
        at += length;
        if (column != UINT16_MAX) {
            if (size > pages->value_bytes_max) {
                return LAC_NSYS_PAGE_LARGE;
            }
            values[column].type = (uint32_t)type;
            offsets[column] = offset;
            needed = offset + size;
        }
        offset += size;
    }
    end = have(pages, payload, needed);
    for (uint32_t c = 0; c < pages->column_count && end == LAC_NSYS_PAGE_ROW; c++) {
        values[c].bytes = values[c].type != 0 ? payload->bytes + offsets[c] : NULL;
    }
    return end;
}

enum lac_nsys_page_end lac_nsys_pages_next(struct lac_nsys_pages *pages,
                                           struct lac_nsys_value *values)
{
    const uint8_t *cell = NULL;
    struct payload payload;
    memset(values, 0, pages->column_count * sizeof(*values));
    enum lac_nsys_page_end end = next_leaf_cell(pages, &cell);
    if (end == LAC_NSYS_PAGE_ROW) {
        end = open_payload(pages, cell, &payload);
    }
    return end == LAC_NSYS_PAGE_ROW ? take_fields(pages, &payload, values) : end;
}

/* ---- the file ---- */

/* What its first bytes say; false: SQLite has to read it. */
static bool read_header(struct lac_nsys_pages *pages)
{
    uint8_t head[HEADER_BYTES];
    struct stat st;
    if (!lac_file_read_at(pages->fd, head, sizeof(head), 0) || fstat(pages->fd, &st) != 0) {
        return false;
    }
    const uint32_t page_bytes = u16_at(head + 16);
    pages->page_bytes = page_bytes == 1 ? 65536 : page_bytes;
    if (pages->page_bytes < PAGE_BYTES_MIN || (pages->page_bytes & (pages->page_bytes - 1)) != 0 ||
        pages->page_bytes < USABLE_MIN + (uint32_t)head[20] || u32_at(head + 56) != UTF8) {
        return false;
    }
    pages->usable = pages->page_bytes - head[20];
    pages->page_count = (uint64_t)st.st_size / pages->page_bytes;
    pages->pages_left = 2 * pages->page_count; /* twice: see have() */
    return true;
}

static bool place_columns(struct lac_nsys_pages *pages, const uint16_t *stored)
{
    memset(pages->column_of, 0xff, sizeof(pages->column_of));
    for (uint32_t c = 0; c < pages->column_count; c++) {
        if (stored[c] == UINT16_MAX) {
            continue;
        }
        if (stored[c] >= FIELDS_MAX || pages->column_of[stored[c]] != UINT16_MAX) {
            return false; /* asked for twice */
        }
        pages->column_of[stored[c]] = (uint16_t)c;
        pages->field_count = stored[c] >= pages->field_count ? stored[c] + 1U : pages->field_count;
    }
    return true;
}

struct lac_nsys_pages *lac_nsys_pages_open(int fd, uint32_t root, const uint16_t *stored,
                                           uint32_t column_count, uint64_t value_bytes_max)
{
    struct lac_nsys_pages *pages = column_count <= FIELDS_MAX ? calloc(1, sizeof(*pages)) : NULL;
    if (pages == NULL) {
        return NULL;
    }
    pages->column_count = column_count;
    pages->value_bytes_max = value_bytes_max;
    pages->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (pages->fd < 0 || !read_header(pages) || !place_columns(pages, stored) ||
        descend(pages, root) != LAC_NSYS_PAGE_ROW) {
        lac_nsys_pages_close(pages); /* SQLite says what is wrong, if anything is */
        return NULL;
    }
    return pages;
}

void lac_nsys_pages_close(struct lac_nsys_pages *pages)
{
    if (pages == NULL) {
        return;
    }
    for (size_t i = 0; i < LEVELS_MAX; i++) {
        free(pages->levels[i].bytes);
    }
    if (pages->fd >= 0) {
        (void)close(pages->fd);
    }
    free(pages->long_row);
    free(pages);
}
