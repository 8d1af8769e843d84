#ifndef LAC_SERVER_HTTP_PRINCIPAL_H
#define LAC_SERVER_HTTP_PRINCIPAL_H

/*
 * Who asks. The gate finds it out from the bearer token or the cookie (lac_http_options.identify),
 * and every handler has it in its request. What somebody may do in a project is
 * server/people's lac_people_rights(): a principal alone says only what it is limited to.
 */

#include "server/base/project_name.h" // IWYU pragma: export

#include <stdbool.h>
#include <stdint.h>

/** What one may do in a project. A role and the scope of a token are sets of these. */
enum {
    LAC_RIGHT_READ = 1,
    LAC_RIGHT_UPLOAD = 2,   /**< add traces */
    LAC_RIGHT_WRITE = 4,    /**< change and delete what is there */
    LAC_RIGHT_ADMIN = 8,    /**< settings and members */
    LAC_RIGHT_COMMENT = 16, /**< talk beside reports: every role has it, the scope "read" not */
    LAC_RIGHTS_ALL = 31,
};

enum lac_principal_kind {
    LAC_PRINCIPAL_NOBODY = 0,
    LAC_PRINCIPAL_KEY,   /**< holds the local key: every right, as the owner of the machine */
    LAC_PRINCIPAL_USER,  /**< signed in with a password, or named by a trusted proxy */
    LAC_PRINCIPAL_TOKEN, /**< a token: its maker's rights, within its scope and project */
};

enum { LAC_USER_NAME_MAX = 64, LAC_PEER_BYTES = 46 };

struct lac_principal {
    enum lac_principal_kind kind;
    int64_t user;                     /**< number of the user; 0: the local key, or its token */
    char name[LAC_USER_NAME_MAX + 1]; /**< "local" for the key, "" for nobody */
    char token[27];                   /**< id of the token, "" none */
    char project[LAC_PROJECT_NAME_MAX + 1]; /**< a token's only project; "" any */
    unsigned scope;                         /**< rights that it cannot exceed */
    bool is_service_admin; /**< every right in every project, within scope and project */
};

/** How a request proves who asks. */
enum lac_proof { LAC_PROOF_NONE = 0, LAC_PROOF_BEARER, LAC_PROOF_COOKIE };

#endif
