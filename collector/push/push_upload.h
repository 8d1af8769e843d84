#ifndef LAC_COLLECTOR_PUSH_PUSH_UPLOAD_H
#define LAC_COLLECTOR_PUSH_PUSH_UPLOAD_H

/*
 * One upload by tus 1.0.0: its requests, and what to make of the answers.
 *
 *   create -> send ... send -> (the last one) trace
 *     ^         |
 *     |         +-- pause, look: where does it stand? --+
 *     +-------------- not there any more ---------------+
 *
 * Functions that ask the server return whether that worked. Where not, `is_fatal` says that trying
 * again is of no use; why was told on stderr then.
 */

#include "collector/push/http_client.h"
#include "collector/push/push.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_push_upload {
    struct lac_http *http; /**< borrowed, as all pointers here */
    const struct lac_push_target *target;
    const char *path;      /**< of what is sent, for messages */
    char id[64];           /**< "" none yet */
    char trace[64];        /**< "" until it is complete */
    uint64_t length_bytes; /**< 0: not known yet */
    uint64_t offset_bytes; /**< the server's */
    unsigned tries;        /**< in a row without a byte more */
    bool was_reached;
    bool is_fatal;
    struct lac_http_reply reply;
};

enum { LAC_PUSH_METADATA_BYTES = 4096 };

/** Ask for an address below /api/v1/. @param fields NULL-terminated or NULL @return whether a reply
 * came, whatever it says */
bool lac_push_ask(struct lac_push_upload *upload, const char *method, const char *address,
                  const char *const *fields, const void *body, size_t body_bytes);

/** Say what went wrong and that it is final. @return false */
bool lac_push_fail(struct lac_push_upload *upload, const char *what);

/** "DIR/resnet.lacuna/" -> "resnet" of a folder; "" of a file, whose own name serves. */
void lac_push_default_name(const char *path, char *out, size_t capacity);

/** The header line of what is told about the trace.
 * @param name "": the receiver makes one from `file_name` */
void lac_push_metadata(const struct lac_push_target *target, const char *file_name,
                       const char *name, const struct lac_push_clock *clock,
                       char out[LAC_PUSH_METADATA_BYTES]);

/** A new upload; length_bytes 0: it will grow. */
bool lac_push_create(struct lac_push_upload *upload, const char *metadata);

/** Where it stands. An upload that is not there any more loses its id. */
bool lac_push_look(struct lac_push_upload *upload);

/** Bytes at offset_bytes. @param length_bytes of the whole upload, when it is known only now; else
 * 0 */
bool lac_push_send(struct lac_push_upload *upload, const void *bytes, size_t size_bytes,
                   uint64_t length_bytes);

/** Take back what the server has of an upload. */
void lac_push_remove(struct lac_push_upload *upload);

/** All is sent: a server that was restarted meanwhile makes the trace by itself. */
bool lac_push_await_trace(struct lac_push_upload *upload);

/** How long to wait before the next try: 0.25 s doubled up to 8 s. */
long lac_push_pause_ms(unsigned tries);

void lac_push_sleep_ms(long ms);

#endif
