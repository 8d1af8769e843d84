#ifndef LAC_SERVER_UPKEEP_ADMIN_QUOTA_H
#define LAC_SERVER_UPKEEP_ADMIN_QUOTA_H

/* `lacuna admin quota`: how much projects and tokens may hold, beside a running server or without
 * one. */

struct lac_admin_quota {
    const char *data_dir;
    const char *project; /**< NULL none; "-": traces without a project */
    const char *token;   /**< id; NULL none */
    const char *bytes;   /**< NULL: list; a size, "none" or "default" */
};

/** @return exit status; what went wrong is said on stderr */
int lac_admin_quota(const struct lac_admin_quota *asked);

#endif
