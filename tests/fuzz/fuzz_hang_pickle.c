/*
 * Any bytes as a pickle: it is refused with a reason and a place inside of the bytes, or every value
 * that can be reached from its root can be looked at; there are no more of them than was allowed.
 */

#include "collector/hang/hang_flight.h"
#include "collector/hang/hang_pickle.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VALUES_MAX = 20000, DEPTH_MAX = 40 };

static unsigned visited;

static unsigned sum;

static void visit(const struct lac_hang_value *value, unsigned depth)
{
    uint32_t count = 0;

    require(value != NULL && value->kind <= LAC_HANG_VALUE_DICT);
    if (depth == DEPTH_MAX || visited++ > VALUES_MAX) {
        return;
    }
    if (value->kind == LAC_HANG_VALUE_TEXT || value->kind == LAC_HANG_VALUE_BYTES) {
        for (size_t i = 0; i < value->text.size; i++) {
            sum += (unsigned char)value->text.at[i];
        }
    }
    (void)lac_hang_value_get(value, "entries");
    for (const struct lac_hang_item *item = value->items; item != NULL; item = item->next) {
        if (item->key != NULL) {
            visit(item->key, depth + 1);
        }
        visit(item->value, depth + 1);
        count++;
    }
    require(count == value->item_count && count <= VALUES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *why = NULL;
    size_t at = 0;
    static struct lac_flight flights[2];
    char text[256];
    uint8_t *const bytes = malloc(size > 0 ? size : 1); /* none too many, for the sanitizer */
    struct lac_hang_pickle *pickle;

    require(bytes != NULL);
    memcpy(bytes, data, size);
    pickle = lac_hang_pickle_read(bytes, size, VALUES_MAX, &why, &at);
    require(at <= size && (pickle == NULL) == (why != NULL));
    if (pickle != NULL) {
        visited = 0;
        visit(lac_hang_pickle_root(pickle), 0);
    }
    lac_hang_pickle_free(pickle);
    if (lac_flight_read(bytes, size, &flights[0])) {
        flights[1] = flights[0];
        lac_flight_say(&flights[0], text, sizeof(text));
        require(!lac_flight_compare(flights, 2, text, sizeof(text)));
    }
    free(bytes);
    return 0;
}
