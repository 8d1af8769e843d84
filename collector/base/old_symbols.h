#ifndef LAC_COLLECTOR_BASE_OLD_SYMBOLS_H
#define LAC_COLLECTOR_BASE_OLD_SYMBOLS_H

/*
 * The library must load wherever people train: no symbol newer than glibc 2.17. Functions that
 * moved from libpthread to libc in 2.34 kept their first versions; we ask for those. `make test`
 * checks the result with objdump.
 */
#include <features.h> /* __GLIBC__ */

#if defined(__GLIBC__) && defined(__x86_64__)
#define LAC_OLD(name)       __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#define LAC_OLD_2_3_3(name) __asm__(".symver " #name "," #name "@GLIBC_2.3.3")
#elif defined(__GLIBC__) && defined(__aarch64__)
#define LAC_OLD(name)       __asm__(".symver " #name "," #name "@GLIBC_2.17")
#define LAC_OLD_2_3_3(name) LAC_OLD(name)
#endif

#ifdef LAC_OLD
LAC_OLD(pthread_create);
LAC_OLD_2_3_3(pthread_condattr_setclock);
LAC_OLD(pthread_join);
LAC_OLD(pthread_key_create);
LAC_OLD(pthread_mutex_trylock);
LAC_OLD(pthread_once);
LAC_OLD(pthread_setspecific);
LAC_OLD(pthread_sigmask);
LAC_OLD(dlerror);
LAC_OLD(dlopen);
LAC_OLD(dlsym);
#endif

#endif
