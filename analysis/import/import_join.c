#include "analysis/import/import_join.h"

#include "analysis/import/join/join_models.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FIRST_LINE[] = "lacuna-join 1\n";

bool lac_join_is_list(const uint8_t *head, size_t size_bytes)
{
    const size_t length = sizeof(FIRST_LINE) - 1;
    return size_bytes >= length && memcmp(head, FIRST_LINE, length) == 0;
}

size_t lac_join_list_write(const struct lac_join_entry *entries, uint32_t count, char *out,
                           size_t capacity_bytes)
{
    size_t used = (size_t)snprintf(out, capacity_bytes, "%s", FIRST_LINE);
    for (uint32_t i = 0; i < count && used < capacity_bytes; i++) {
        if (entries[i].has_offset) {
            used += (size_t)snprintf(out + used, capacity_bytes - used, "%" PRId64 " ",
                                     entries[i].offset_ns);
        } else {
            used += (size_t)snprintf(out + used, capacity_bytes - used, "- ");
        }
        for (const char *c = entries[i].name; *c != '\0' && used + 2 < capacity_bytes; c++) {
            out[used++] = (unsigned char)*c < 0x20 ? '_' : *c; /* a line is a file */
        }
        out[used < capacity_bytes ? used : capacity_bytes - 1] = '\n';
        used++;
    }
    return used < capacity_bytes ? used : 0;
}

static enum lac_status corrupt(struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                    "the list of joined files at the start of the archive is damaged");
}

static bool read_entry(char *line, struct lac_join_entry *entry)
{
    char *space = strchr(line, ' ');
    char *end = NULL;
    *entry = (struct lac_join_entry){.has_offset = line[0] != '-' || line[1] != ' '};
    if (space == NULL || space[1] == '\0') {
        return false;
    }
    if (entry->has_offset) {
        errno = 0;
        entry->offset_ns = strtoll(line, &end, 10);
        if (end != space || errno != 0 || entry->offset_ns > LAC_TIME_MAX_NS ||
            entry->offset_ns < -LAC_TIME_MAX_NS) {
            return false;
        }
    }
    (void)snprintf(entry->name, sizeof(entry->name), "%s", space + 1);
    return true;
}

static enum lac_status read_text(struct lac_source *source, char *text, size_t *ret_size,
                                 struct lac_error *reterr)
{
    size_t got = 1;
    enum lac_status status = LAC_OK;
    *ret_size = 0;
    while (status == LAC_OK && got > 0 && *ret_size < LAC_JOIN_TEXT_MAX) {
        status = lac_source_read(source, (uint8_t *)text + *ret_size, LAC_JOIN_TEXT_MAX - *ret_size,
                                 &got, reterr);
        *ret_size += status == LAC_OK ? got : 0;
    }
    return status;
}

enum lac_status lac_join_list_read(struct lac_source *source, struct lac_join_list *list,
                                   struct lac_error *reterr)
{
    char *text = calloc(1, LAC_JOIN_TEXT_MAX + 1);
    size_t size = 0;
    list->entries = calloc(LAC_JOIN_MEMBERS_MAX, sizeof(*list->entries));
    list->members = calloc(LAC_JOIN_MEMBERS_MAX, sizeof(*list->members));
    enum lac_status status = text != NULL && list->entries != NULL && list->members != NULL
                                 ? read_text(source, text, &size, reterr)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK &&
        (size == LAC_JOIN_TEXT_MAX || !lac_join_is_list((const uint8_t *)text, size))) {
        status = corrupt(reterr);
    }
    if (status == LAC_OK && text != NULL) {
        text[size] = '\0';
        char *rest = text + sizeof(FIRST_LINE) - 1;
        while (status == LAC_OK && rest[0] != '\0') {
            char *line = strsep(&rest, "\n");
            if (rest == NULL || list->count == LAC_JOIN_MEMBERS_MAX ||
                !read_entry(line, &list->entries[list->count])) {
                status = corrupt(reterr);
                break;
            }
            const struct lac_join_entry *entry = &list->entries[list->count];
            list->members[list->count++] = (struct lac_join_member){.name = entry->name,
                                                                    .has_offset = entry->has_offset,
                                                                    .offset_ns = entry->offset_ns};
        }
    }
    free(text);
    return status == LAC_OK && list->count < 2 ? corrupt(reterr) : status;
}

void lac_join_list_done(struct lac_join_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        lac_model_destroy(list->members[i].model);
    }
    free(list->entries);
    free(list->members);
    *list = (struct lac_join_list){0};
}

enum lac_status lac_join_list_take(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct lac_join_list *list = context;
    if (list->at >= list->count || list->given++ > 0) {
        lac_model_destroy(model);
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%.100s holds several traces: unpack it and join one of them",
                        list->at < list->count ? list->entries[list->at].name : "the archive");
    }
    list->members[list->at].model = model;
    return LAC_OK;
}
