/* gzip by ISA-L's streaming inflate: several members in a row, as pigz and bgzip write them. */

#include "analysis/import/source/source.h"
#include "analysis/import/source/source_private.h"
#include "analysis/model/status.h"

#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIVEN_BACK_MAX = 16 };

struct gzip_source {
    struct lac_source base;
    struct inflate_state state;
    bool member_open; /**< between the header and the checksum of a member */
    bool ended;
    uint8_t room[GIVEN_BACK_MAX]; /**< lies right before input: see take_back() */
    uint8_t input[LAC_SOURCE_INPUT_BYTES];
};

static void note_damage(struct gzip_source *gzip, const char *what)
{
    gzip->ended = true;
    (void)snprintf(gzip->base.damage, sizeof(gzip->base.damage), "%s", what);
}

static enum lac_status refill(struct gzip_source *gzip, struct lac_error *reterr)
{
    size_t size = 0;
    enum lac_status status =
        lac_source_read(gzip->base.inner, gzip->input, sizeof(gzip->input), &size, reterr);
    gzip->state.next_in = gzip->input;
    gzip->state.avail_in = (uint32_t)size;
    return status;
}

/* At the end of a member ISA-L may hold whole bytes of what follows in its bit buffer: put them
 * back before next_in (room[] catches those that came with the previous refill). */
static void take_back(struct gzip_source *gzip)
{
    struct inflate_state *state = &gzip->state;
    uint32_t count = state->read_in_length > 0 ? (uint32_t)state->read_in_length / 8 : 0;
    uint64_t bits = state->read_in >> ((uint32_t)state->read_in_length % 8);
    size_t space = (size_t)(state->next_in - gzip->input) + GIVEN_BACK_MAX;
    if (count > 8 || count > space) {
        count = 0;
    }
    uint8_t *to = state->next_in - count;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = (uint8_t)(bits >> (8 * i));
    }
    state->next_in = to;
    state->avail_in += count;
    state->read_in = 0;
    state->read_in_length = 0;
}

/* Begin a member if another one follows. Sets ended when none does. */
static enum lac_status begin_member(struct gzip_source *gzip, struct lac_error *reterr)
{
    struct inflate_state *state = &gzip->state;
    while (state->avail_in < 2) {
        /* two bytes of magic may lie on both sides of a refill */
        uint8_t first = state->avail_in ? *state->next_in : 0;
        uint32_t kept = state->avail_in;
        enum lac_status status = refill(gzip, reterr);
        if (status != LAC_OK) {
            return status;
        }
        if (state->avail_in == 0) {
            if (kept) {
                note_damage(gzip, "stray byte after the end of the gzip data");
            }
            gzip->ended = true;
            return LAC_OK;
        }
        if (kept) {
            state->next_in--;
            *state->next_in = first;
            state->avail_in++;
        }
    }
    if (state->next_in[0] != 0x1f || state->next_in[1] != 0x8b) {
        note_damage(gzip, "bytes after the end of the gzip data that are not gzip");
        return LAC_OK;
    }
    uint8_t *next_in = state->next_in;
    uint32_t avail_in = state->avail_in;
    isal_inflate_reset(state);
    state->next_in = next_in;
    state->avail_in = avail_in;
    state->crc_flag = ISAL_GZIP;
    gzip->member_open = true;
    return LAC_OK;
}

static enum lac_status gzip_read(struct lac_source *self, uint8_t *buffer, size_t capacity,
                                 size_t *ret_size, struct lac_error *reterr)
{
    struct gzip_source *gzip = (struct gzip_source *)self;
    struct inflate_state *state = &gzip->state;
    size_t wanted = capacity < ((size_t)1 << 30) ? capacity : (size_t)1 << 30;
    size_t written = 0;
    while (written == 0 && !gzip->ended) {
        enum lac_status status = LAC_OK;
        if (!gzip->member_open) {
            status = begin_member(gzip, reterr);
        } else if (state->avail_in == 0) {
            status = refill(gzip, reterr);
            /* with no input left, what the decoder still holds may come out; then it is cut */
        }
        if (status != LAC_OK) {
            return status;
        }
        if (gzip->ended) {
            break;
        }
        bool at_end = state->avail_in == 0;
        state->next_out = buffer;
        state->avail_out = (uint32_t)wanted;
        int code = isal_inflate(state);
        written = wanted - state->avail_out;
        if (code < 0) {
            note_damage(gzip, code == ISAL_INCORRECT_CHECKSUM
                                  ? "the gzip checksum does not match the data"
                                  : "the gzip data is damaged");
        } else if (state->block_state == ISAL_BLOCK_FINISH) {
            gzip->member_open = false;
            take_back(gzip);
        } else if (at_end && written == 0) {
            note_damage(gzip, "the gzip data ends too early");
        }
    }
    *ret_size = written;
    return lac_source_count_expanded(self, written, reterr);
}

enum lac_status lac_source_open_gzip(struct lac_source *inner, struct lac_source **ret_source,
                                     struct lac_error *reterr)
{
    struct gzip_source *gzip = calloc(1, sizeof(*gzip));
    if (gzip == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    gzip->base.read = gzip_read;
    gzip->base.inner = inner;
    gzip->base.budget = inner->budget;
    isal_inflate_init(&gzip->state);
    gzip->state.next_in = gzip->input;
    *ret_source = &gzip->base;
    return LAC_OK;
}
