#ifndef LAC_COLLECTOR_PUSH_PUSH_STATE_H
#define LAC_COLLECTOR_PUSH_PUSH_STATE_H

/*
 * How far a file of somebody else's was sent: $XDG_STATE_HOME/lacuna/push/KEY, by default
 * ~/.local/state/lacuna/push/KEY, nothing beside the file itself. KEY is the SHA-256 of the file's
 * path, device, inode and size and of the server, so a file that changed has no state.
 *
 * The folder has mode 0700 and is used only if it is the user's own and nobody else may write
 * there; its files have mode 0600. Where it cannot be made or written there is no state: an upload
 * that breaks off begins anew. What was not touched for 30 days goes with the next write.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** @return bytes read into `text`, at most `capacity`; -1: there is none */
ssize_t lac_push_state_read(const char *path, const char *server, char *text, size_t capacity);

/** Replaced as a whole. @return false: it could not be written */
bool lac_push_state_write(const char *path, const char *server, const char *text, size_t length);

void lac_push_state_remove(const char *path, const char *server);

#endif
