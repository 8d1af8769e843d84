#ifndef LAC_SERVER_INGEST_SANDBOX_H
#define LAC_SERVER_INGEST_SANDBOX_H

/*
 * What an importing process may still do once it has what it needs: read one file, write in one
 * folder, report through one pipe. Landlock decides which files it opens, a seccomp filter which
 * calls it makes at all. Both are given up rights: they cannot be taken back.
 *
 * A kernel without one of them, or one that forbids it, leaves the other, and the limits and the
 * user `nobody` that are set beside (import_worker.c). Builds with sanitizers have neither: their
 * run time opens files and starts threads of its own.
 */

#include <stdbool.h>
#include <stddef.h>

/** What is in force in this thread, and those it will start. */
struct lac_sandbox {
    int landlock_version; /**< of the kernel's interface; 0: not in force */
    bool has_seccomp;
};

/**
 * Enter. Both belong to the calling thread: each thread that is there enters by itself, before which
 * it has set no_new_privs.
 *
 * @param input_fd  a file that may be opened again for reading (by /proc/self/fd); -1: none
 * @param folder_fd a folder whose content may be read, made, written and removed; -1: none
 */
struct lac_sandbox lac_sandbox_enter(int input_fd, int folder_fd);

/**
 * Try it in a child, which opens a file and makes a socket. Takes a few milliseconds.
 *
 * @return what held there
 */
struct lac_sandbox lac_sandbox_probe(void);

/** "Landlock 6 and seccomp", for people. */
void lac_sandbox_describe(const struct lac_sandbox *sandbox, char *out, size_t capacity_bytes);

#endif
