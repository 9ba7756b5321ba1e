/*
 * For LD_PRELOAD: while the file that FAILING_SYNC names exists, syncs fail with EIO, as on a disk that is broken; with SLOW_SYNC
 * they take a tenth of a second longer instead. With HANGING_SYNC those of files below that folder do not come back at all. Written without headers, so that a compiler alone is enough.
 */
extern char *getenv(const char *);
extern int access(const char *, int);
extern long readlink(const char *, char *, unsigned long);
extern long syscall(long, ...);
extern int *__errno_location(void);

#if defined(__x86_64__)
enum { SYS_FSYNC = 74, SYS_FDATASYNC = 75, SYS_NANOSLEEP = 35 };
#elif defined(__aarch64__)
enum { SYS_FSYNC = 82, SYS_FDATASYNC = 83, SYS_NANOSLEEP = 101 };
#endif
enum { EIO_NUMBER = 5 };

/* Whether the path of an open file begins with this one. */
static int is_below(int file, const char *folder) {
  char link[32] = "/proc/self/fd/", path[4096];
  int at = 14, length, digits = file, size = 1;
  while (digits >= 10) digits /= 10, size *= 10;
  for (; size > 0; size /= 10) link[at++] = '0' + file / size % 10;
  link[at] = 0;
  length = readlink(link, path, sizeof path);
  for (at = 0; folder[at]; at++)
    if (at >= length || path[at] != folder[at]) return 0;
  return 1;
}

static int is_failing(int file) {
  const char *path = getenv("FAILING_SYNC"), *folder = getenv("HANGING_SYNC");
  if (!path || access(path, 0) != 0) return 0;
  if (folder) {
    long second[2] = {1, 0};
    if (!is_below(file, folder)) return 0;
    while (access(path, 0) == 0) syscall(SYS_NANOSLEEP, second, 0);
    return 0;
  }
  if (getenv("SLOW_SYNC")) {
    long tenth_of_a_second[2] = {0, 100000000};
    syscall(SYS_NANOSLEEP, tenth_of_a_second, 0);
    return 0;
  }
  *__errno_location() = EIO_NUMBER;
  return 1;
}

int fsync(int file) { return is_failing(file) ? -1 : (int)syscall(SYS_FSYNC, file); }
int fdatasync(int file) { return is_failing(file) ? -1 : (int)syscall(SYS_FDATASYNC, file); }
