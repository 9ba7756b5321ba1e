/*
 * For LD_PRELOAD: while the file that FAILING_SYNC names exists, syncs fail with EIO, as on a disk that is broken; with SLOW_SYNC
 * they take a tenth of a second longer instead. Written without headers, so that a compiler alone is enough.
 */
extern char *getenv(const char *);
extern int access(const char *, int);
extern long syscall(long, ...);
extern int *__errno_location(void);

#if defined(__x86_64__)
enum { SYS_FSYNC = 74, SYS_FDATASYNC = 75, SYS_NANOSLEEP = 35 };
#elif defined(__aarch64__)
enum { SYS_FSYNC = 82, SYS_FDATASYNC = 83, SYS_NANOSLEEP = 101 };
#endif
enum { EIO_NUMBER = 5 };

static int is_failing(void) {
  const char *path = getenv("FAILING_SYNC");
  if (!path || access(path, 0) != 0) return 0;
  if (getenv("SLOW_SYNC")) {
    long tenth_of_a_second[2] = {0, 100000000};
    syscall(SYS_NANOSLEEP, tenth_of_a_second, 0);
    return 0;
  }
  *__errno_location() = EIO_NUMBER;
  return 1;
}

int fsync(int file) { return is_failing() ? -1 : (int)syscall(SYS_FSYNC, file); }
int fdatasync(int file) { return is_failing() ? -1 : (int)syscall(SYS_FDATASYNC, file); }
