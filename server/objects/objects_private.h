#ifndef LAC_SERVER_OBJECTS_OBJECTS_PRIVATE_H
#define LAC_SERVER_OBJECTS_OBJECTS_PRIVATE_H

#include "server/objects/objects.h"

#include <stdatomic.h>

/** Where bytes of an object go, piece by piece. @return false: they could not be taken */
struct lac_object_sink {
    bool (*take)(void *context, const void *bytes, size_t size_bytes);
    /** Begin again: a transfer was cut off. @return false: that cannot be done */
    bool (*restart)(void *context);
    void *context;
};

/** What a kind of storage does. `size_bytes` UINT64_MAX: to the end. */
struct lac_objects_kind {
    enum lac_status (*put)(struct lac_objects *, const char *name, int fd, uint64_t bytes,
                           const uint8_t *sha256, struct lac_error *);
    enum lac_status (*read)(struct lac_objects *, const char *name, uint64_t offset,
                            uint64_t size_bytes, const struct lac_object_sink *,
                            struct lac_error *);
    enum lac_status (*list)(struct lac_objects *, const char *prefix,
                            enum lac_status (*visit)(void *, const struct lac_object *),
                            void *context, struct lac_error *);
    enum lac_status (*remove)(struct lac_objects *, const char *name, struct lac_error *);
    void (*close)(struct lac_objects *);
};

struct lac_objects {
    const struct lac_objects_kind *kind;
    char *url;
    unsigned read_patience_ms, write_patience_ms;
    uint64_t part_bytes;
    void *own; /**< of the kind */
    atomic_bool is_stopping;
    atomic_uint_fast64_t reads, writes, retries, failures, read_bytes, written_bytes;
};

extern const struct lac_objects_kind lac_objects_folder;
extern const struct lac_objects_kind lac_objects_s3;

/** Set `objects->own`. */
LAC_MUST_USE enum lac_status lac_objects_folder_open(struct lac_objects *objects,
                                                     const char *folder, struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_objects_s3_open(struct lac_objects *objects,
                                                 const struct lac_objects_options *options,
                                                 struct lac_error *reterr);

#endif
