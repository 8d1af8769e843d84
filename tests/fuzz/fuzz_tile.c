/* Any bytes as a tile section: refused, or a tile that comes back the same when it is encoded. */

#include "analysis/model/tile.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_promises(const struct lac_tile *tile)
{
    require(tile->level < LAC_TILE_LEVEL_COUNT);
    for (uint32_t i = 0; i < tile->native_count; i++) {
        const struct lac_tile_native *native = &tile->natives[i];

        require(native->start_ns >= 0 && native->dur_ns >= 0);
        require(native->start_ns + native->dur_ns <= LAC_TIME_MAX_NS);
        require(native->kind < LAC_SLICE_KIND_COUNT_);
    }
    for (uint32_t i = 0; i < tile->cell_count; i++) {
        const struct lac_tile_cell *cell = &tile->cells[i];

        require(cell->cell < LAC_TILE_CELLS && cell->count > 0);
        require(cell->busy_ns >= 0 && cell->busy_ns <= lac_tile_cell_ns(tile->level));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lac_tile tile = {0};
    struct lac_tile again = {0};
    struct lac_error error = {0};
    uint8_t *bytes[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    size_t capacities[2] = {0, 0};
    enum lac_status status = lac_tile_decode(data, size, &tile, &error);

    if (status != LAC_OK) {
        require(error.status == status && error.message[0] != '\0');
        return 0;
    }
    check_promises(&tile);
    require(lac_tile_encode(&tile, &bytes[0], &sizes[0], &capacities[0]) == LAC_OK);
    require(lac_tile_decode(bytes[0], sizes[0], &again, &error) == LAC_OK);
    require(lac_tile_encode(&again, &bytes[1], &sizes[1], &capacities[1]) == LAC_OK);
    require(sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0);
    lac_tile_done(&tile);
    lac_tile_done(&again);
    free(bytes[0]);
    free(bytes[1]);
    return 0;
}
