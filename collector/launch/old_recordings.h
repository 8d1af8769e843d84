#ifndef LAC_COLLECTOR_LAUNCH_OLD_RECORDINGS_H
#define LAC_COLLECTOR_LAUNCH_OLD_RECORDINGS_H

/**
 * Keep only the newest of BASE.old, BASE.old2, ...: LACUNA_OLD_MAX of them (default 8) and
 * LACUNA_OLD_BYTES (default 16g; 0 of either: no limit), at least one. A job that is requeued again
 * and again would fill the disk. A line on stderr says what went. A folder that holds anything but
 * recordings is left alone and does not count.
 */
void lac_old_recordings_trim(const char *base);

/** The greatest number among BASE.old (1), BASE.old2, ..., whatever they hold; 0: there is none. */
unsigned lac_old_recordings_last(const char *base);

#endif
