#include "server/json/flame_pack.h"

#include "analysis/diagnose/result/pack.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>

enum { VERSION = 1, NODE_PACKED_BYTES = 6 };

/** Children stand together, behind their parent: their place follows from their parents. */
static void adopt(struct lac_pack *pack, struct lac_flame *flame, uint32_t n)
{
    struct lac_flame_node *parent = &flame->nodes[flame->nodes[n].parent];
    if (parent->child_count == 0) {
        parent->first_child = n;
    } else if (parent->first_child + parent->child_count != n) {
        lac_pack_refuse(pack);
    }
    if (flame->nodes[n].value_ns > parent->value_ns) {
        lac_pack_refuse(pack);
    }
    parent->child_count++;
}

static void pack_all(struct lac_pack *pack, struct lac_flame *flame, const struct lac_model *model)
{
    lac_pack_exactly(pack, VERSION);
    LAC_PACK_INT(pack, flame->step_count, 0, UINT32_MAX);
    flame->node_count = (uint32_t)lac_pack_array(pack, flame->node_count, NODE_PACKED_BYTES,
                                                 (void *)&flame->nodes, sizeof(*flame->nodes));
    for (uint32_t n = 0; n < flame->node_count; n++) {
        struct lac_flame_node *node = &flame->nodes[n];
        int64_t name = node->name == LAC_NONE ? -1 : (int64_t)node->name;
        lac_pack_int(pack, &name, -1,
                     model != NULL ? (int64_t)model->strings.count - 1 : INT64_MAX);
        LAC_PACK_INT(pack, node->parent, 0, n > 0 ? n - 1 : UINT32_MAX);
        LAC_PACK_INT(pack, node->count, 0, INT64_MAX);
        lac_pack_int(pack, &node->value_ns, 0, INT64_MAX);
        lac_pack_int(pack, &node->self_ns, INT64_MIN, INT64_MAX);
        LAC_PACK_INT(pack, node->kind, 0, LAC_SLICE_KIND_COUNT_ - 1);
        if (pack->is_reading) {
            node->name = name < 0 ? LAC_NONE : (uint32_t)name;
            if (n > 0 && pack->status == LAC_OK) {
                adopt(pack, flame, n);
            }
        }
    }
}

enum lac_status lac_flame_pack(const struct lac_flame *flame, uint8_t **ret_bytes,
                               size_t *ret_size_bytes)
{
    struct lac_pack pack = {.is_reading = false};
    struct lac_flame copy = *flame; /* the functions read as well as write */
    pack_all(&pack, &copy, NULL);
    if (pack.status) {
        free(pack.bytes);
        return pack.status;
    }
    *ret_bytes = pack.bytes;
    *ret_size_bytes = (size_t)pack.size_bytes;
    return LAC_OK;
}

enum lac_status lac_flame_unpack(const uint8_t *bytes, size_t size_bytes,
                                 const struct lac_model *model, struct lac_flame **ret_flame)
{
    struct lac_flame *flame = calloc(1, sizeof(*flame));
    struct lac_pack pack;
    if (flame == NULL) {
        return LAC_ERR_NOMEM;
    }
    lac_pack_open(&pack, bytes, size_bytes);
    pack_all(&pack, flame, model);
    if (!lac_pack_is_at_end(&pack)) {
        lac_pack_refuse(&pack);
        lac_flame_destroy(flame);
        return pack.status;
    }
    *ret_flame = flame;
    return LAC_OK;
}
