#ifndef LAC_ANALYSIS_IMPORT_NSYS_NSYS_VFS_H
#define LAC_ANALYSIS_IMPORT_NSYS_NSYS_VFS_H

struct sqlite3;

#define LAC_NSYS_VFS_FD "lacuna-fd:"

/** SQLite's own way to open a file resolves links and walks the folders on the way. A process that
 *  was handed nothing but a descriptor may not enter those folders, and reads /proc/self/fd/N.
 *  This file system opens exactly the path it is given, for reading, never locks and never looks
 *  for a journal next to it.
 *  LAC_NSYS_VFS_FD with a number behind it is a descriptor that is open already.
 *  @return its name for sqlite3_open_v2, valid forever; NULL when SQLite cannot take it */
const char *lac_nsys_vfs(void);

/** The descriptor of the main file that this file system opened; -1: it opened none. */
int lac_nsys_vfs_fd_of(struct sqlite3 *db);

#endif
