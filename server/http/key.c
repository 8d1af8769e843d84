#include "server/http/key.h"

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/io_full.h"
#include "server/http/principal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static enum lac_status derive_cookie(struct lac_key *key, struct lac_error *reterr)
{
    static const char context[] = "lacuna browser cookie 1";
    uint8_t hash[32];

    _Static_assert(LAC_BASE32_TEXT_BYTES(sizeof(hash)) == LAC_KEY_TEXT_LENGTH + 1, "256 bits");
    if (crypto_generichash(hash, sizeof(hash), (const uint8_t *)context, sizeof(context) - 1,
                           (const uint8_t *)key->text, LAC_KEY_TEXT_LENGTH) != 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "cannot derive the cookie from the key");
    }
    lac_base32_encode(hash, sizeof(hash), key->cookie);
    return LAC_OK;
}

static enum lac_status read_key(int fd, const char *path, struct lac_key *key,
                                struct lac_error *reterr)
{
    char text[LAC_KEY_TEXT_LENGTH + 2] = {0};
    struct stat info;
    ssize_t length;

    if (fstat(fd, &info) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be examined", path);
    }
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%s: others can read the key: remove the file, and a new one is created",
                        path);
    }
    length = read(fd, text, sizeof(text) - 1);
    if (length < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be read", path);
    }
    if (strspn(text, LAC_BASE32_DIGITS) != LAC_KEY_TEXT_LENGTH ||
        (text[LAC_KEY_TEXT_LENGTH] != '\n' && text[LAC_KEY_TEXT_LENGTH] != '\0')) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        "%s: holds no key: remove the file, and a new one is created", path);
    }
    memcpy(key->text, text, LAC_KEY_TEXT_LENGTH);
    key->text[LAC_KEY_TEXT_LENGTH] = '\0';
    sodium_memzero(text, sizeof(text));
    return LAC_OK;
}

/* Write a fresh key next to `path` and link it there: the file is whole or absent,
 * the first wins. */
static enum lac_status make_key(const char *data_dir, const char *path, struct lac_error *reterr)
{
    char temporary[4200];
    char text[LAC_KEY_TEXT_LENGTH + 2];
    uint8_t bytes[32];
    enum lac_status status = LAC_OK;
    int fd;

    (void)snprintf(temporary, sizeof(temporary), "%s/.local.token.%ld", data_dir, (long)getpid());
    (void)unlink(temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", temporary,
                        strerror(errno));
    }
    randombytes_buf(bytes, sizeof(bytes));
    lac_base32_encode(bytes, sizeof(bytes), text);
    text[LAC_KEY_TEXT_LENGTH] = '\n';
    if (!lac_write_full(fd, text, LAC_KEY_TEXT_LENGTH + 1) || fsync(fd) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", temporary,
                          strerror(errno));
    }
    (void)close(fd);
    if (status == LAC_OK && link(temporary, path) != 0 && errno != EEXIST &&
        rename(temporary, path) != 0) { /* a file system without hard links */
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", path, strerror(errno));
    }
    (void)unlink(temporary);
    sodium_memzero(bytes, sizeof(bytes));
    sodium_memzero(text, sizeof(text));
    return status;
}

enum lac_status lac_key_load(const char *data_dir, struct lac_key *ret_key,
                             struct lac_error *reterr)
{
    assert(data_dir != NULL && ret_key != NULL);
    char path[4096];
    struct lac_key key = {0};
    enum lac_status status;
    int length;
    int fd;

    if (sodium_init() < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no source of random numbers");
    }
    length = snprintf(path, sizeof(path), "%s/local.token", data_dir);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the data folder's name is too long");
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        status = make_key(data_dir, path, reterr);
        if (status != LAC_OK) {
            return status;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be opened: %s", path, strerror(errno));
    }
    status = read_key(fd, path, &key, reterr);
    (void)close(fd);
    if (status == LAC_OK) {
        status = derive_cookie(&key, reterr);
    }
    if (status == LAC_OK) {
        *ret_key = key;
    }
    return status;
}

enum lac_status lac_key_write_header(const char *data_dir, const struct lac_key *key,
                                     struct lac_error *reterr)
{
    assert(data_dir != NULL && key != NULL);
    char path[4096];
    char temporary[4200];
    char text[LAC_KEY_TEXT_LENGTH + 40];
    int length;
    int fd;

    length = snprintf(path, sizeof(path), "%s/local.header", data_dir);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the data folder's name is too long");
    }
    (void)snprintf(temporary, sizeof(temporary), "%s/.local.header.%ld", data_dir, (long)getpid());
    (void)unlink(temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", temporary,
                        strerror(errno));
    }
    length = snprintf(text, sizeof(text), "Authorization: Bearer %s\n", key->text);
    const bool written = lac_write_full(fd, text, (size_t)length);
    sodium_memzero(text, sizeof(text));
    if (close(fd) != 0 || !written || rename(temporary, path) != 0) {
        const int error = errno;

        (void)unlink(temporary);
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", path, strerror(error));
    }
    return LAC_OK;
}

/* Hashing both sides makes the comparison independent of length and content. */
bool lac_key_same_secret(const char *expected, const char *given)
{
    uint8_t a[32];
    uint8_t b[32];

    (void)crypto_generichash(a, sizeof(a), (const uint8_t *)expected, strlen(expected), NULL, 0);
    (void)crypto_generichash(b, sizeof(b), (const uint8_t *)given, strlen(given), NULL, 0);
    return sodium_memcmp(a, b, sizeof(a)) == 0;
}

bool lac_key_matches(const struct lac_key *key, const char *given)
{
    return lac_key_same_secret(key->text, given);
}

bool lac_key_cookie_matches(const struct lac_key *key, const char *given)
{
    return lac_key_same_secret(key->cookie, given);
}

bool lac_key_identify(const struct lac_key *key, enum lac_proof proof, const char *secret,
                      struct lac_principal *ret_who)
{
    const bool is_ours = proof == LAC_PROOF_BEARER ? lac_key_matches(key, secret)
                                                   : lac_key_cookie_matches(key, secret);

    if (is_ours) {
        *ret_who = (struct lac_principal){.kind = LAC_PRINCIPAL_KEY,
                                          .name = "local",
                                          .scope = LAC_RIGHTS_ALL,
                                          .is_service_admin = true};
    }
    return is_ours;
}
