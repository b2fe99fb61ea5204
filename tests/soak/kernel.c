/* Lets the soak change what one process gets from its kernel: the time, fsync and writes.
 *
 * Loaded with LD_PRELOAD. SOAK_KERNEL names a file of three 64-bit numbers, which may change at any time:
 * how many seconds the wall clock is off, how many microseconds each fsync takes, and the errno with which
 * writes at an offset fail, as SQLite makes them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t calm[3];
static const volatile int64_t *now_in_force = calm;

__attribute__((constructor)) static void begin(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the soak, however that ends */
    const char *path = getenv("SOAK_KERNEL");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof calm, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) now_in_force = found;
    close(file);
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

int clock_gettime(clockid_t clock, struct timespec *at) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int code = real(clock, at);
    if (code == 0 && clock == CLOCK_REALTIME) at->tv_sec += now_in_force[0];
    return code;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

int fsync(int file) {
    REAL(int, "fsync", int);
    if (now_in_force[1]) usleep((useconds_t)now_in_force[1]);
    return real(file);
}

int fdatasync(int file) {
    REAL(int, "fdatasync", int);
    if (now_in_force[1]) usleep((useconds_t)now_in_force[1]);
    return real(file);
}

#define WRITE(name) \
    ssize_t name(int file, const void *bytes, size_t count, off64_t offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, off64_t); \
        if (now_in_force[2]) { errno = (int)now_in_force[2]; return -1; } \
        return real(file, bytes, count, offset); \
    }

WRITE(pwrite64)
WRITE(pwrite)
