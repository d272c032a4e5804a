/* Kills the process at a chosen call that changes files (for tests; loaded before libc). A negative number at which to
 * die means that a write is done by half first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

long deadly_at = 0;    /* die at this call, counted from when it was set; 0: never */
long deadly_calls = 0; /* calls so far */
int deadly_half = 0;   /* whether the write at which to die is half done */

static int now(void) { return deadly_at && ++deadly_calls == deadly_at; }
static void die(void) { kill(getpid(), SIGKILL); }

#define WRAP(type, name, params, args)                                 \
    type name params {                                                 \
        static type(*inner) params;                                    \
        if (!inner) inner = (type(*) params)dlsym(RTLD_NEXT, #name);   \
        if (now()) die();                                              \
        return inner args;                                             \
    }

#define WRAP_WRITE(name, offset)                                                                    \
    ssize_t name(int file, const void *data, size_t size, offset place) {                           \
        static ssize_t (*inner)(int, const void *, size_t, offset);                                 \
        if (!inner) inner = (ssize_t(*)(int, const void *, size_t, offset))dlsym(RTLD_NEXT, #name); \
        if (now()) {                                                                                \
            if (deadly_half) inner(file, data, size / 2, place);                                    \
            die();                                                                                  \
        }                                                                                           \
        return inner(file, data, size, place);                                                      \
    }

WRAP_WRITE(pwrite, off_t)
WRAP_WRITE(pwrite64, off64_t)
WRAP(int, fsync, (int file), (file))
WRAP(int, fdatasync, (int file), (file))
WRAP(int, ftruncate, (int file, off_t size), (file, size))
WRAP(int, ftruncate64, (int file, off64_t size), (file, size))
WRAP(int, unlink, (const char *path), (path))
