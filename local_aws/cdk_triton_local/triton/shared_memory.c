/* Gives the Python models of a server no more shared memory than a container of SageMaker has.
 *
 * Each instance of a Python model has a file in /dev/shm, whose bytes the Python backend reserves with
 * posix_fallocate(3) (boost/interprocess/detail/os_file_functions.hpp). Preloaded into the server and the processes of
 * its models, this library counts these files, and reports a full file system (ENOSPC) where they are larger together
 * than a container's /dev/shm. So the server itself says what it would say there.
 *
 * The stand-ins of other backends are Python-based backends, which get the settings of the Python backend, the prefix of
 * the names among them. What stands in for a GPU needs no shared memory, so a process of a stand-in marks its file, and
 * marked files do not count. Only for the moment between the file and the process, its start size does.
 *
 * $CDK_TRITON_SHARED_MEMORY is how the names of these files begin, and $CDK_TRITON_SHARED_MEMORY_BYTES the limit.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char place[] = "/dev/shm/";
static const char mark[] = ".stand-in";
static const char stub[] = "triton_python_backend_stub";
static const char of_python_model[] = "DEFAULT";

typedef char file_path[sizeof place + 255 + sizeof mark];

static const char *mark_of(const char *region, file_path path) {
  snprintf(path, sizeof(file_path), "%s%.255s%s", place, region, mark);
  return path;
}

/* The arguments of the stub: its model, its file in /dev/shm, …, and the directory of its backend, or DEFAULT
 * (src/stub_launcher.cc of python_backend, r24.10). */
__attribute__((constructor)) static void mark_stand_in(void) {
  const char *prefix = getenv("CDK_TRITON_SHARED_MEMORY");
  static char given[1 << 16];
  int file = prefix == NULL ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t length = read(file, given, sizeof given - 1);
  close(file);
  const char *region = NULL, *last = given;
  int count = 0;
  for (const char *each = given; each < given + length; each += strlen(each) + 1, count++) {
    if (count == 2) region = each;
    last = each;
  }
  size_t start = strlen(given), name = sizeof stub - 1;
  if (region == NULL || start < name || strcmp(given + start - name, stub) != 0) return;
  if (strcmp(last, of_python_model) == 0 || strncmp(region, prefix, strlen(prefix)) != 0) return;
  file_path path;
  file = open(mark_of(region, path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

static int is_marked(const char *region) {
  file_path path;
  return access(mark_of(region, path), F_OK) == 0;
}

static int is_counted(int descriptor, const char *prefix) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  size_t start = sizeof place - 1;
  const char *region = path + start;
  return strncmp(path, place, start) == 0 && strncmp(region, prefix, strlen(prefix)) == 0 && !is_marked(region);
}

/* Whether a file is a mark; it is removed if the file that it marks is gone. */
static int is_mark(int directory, const char *name) {
  size_t length = strlen(name), end = sizeof mark - 1;
  if (length <= end || strcmp(name + length - end, mark) != 0) return 0;
  char region[256];
  snprintf(region, sizeof region, "%.*s", (int)(length - end), name);
  if (faccessat(directory, region, F_OK, 0) != 0) unlinkat(directory, name, 0);
  return 1;
}

static unsigned long long bytes_of_all(const char *prefix) {
  unsigned long long sum = 0;
  DIR *directory = opendir(place);
  if (directory == NULL) return 0;
  struct dirent *entry;
  while ((entry = readdir(directory)) != NULL) {
    struct stat file;
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || is_marked(entry->d_name)) continue;
    if (is_mark(dirfd(directory), entry->d_name)) continue;
    if (fstatat(dirfd(directory), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0) sum += file.st_size;
  }
  closedir(directory);
  return sum;
}

typedef int (*fallocate_function)(int, off_t, off_t);

int posix_fallocate(int descriptor, off_t offset, off_t length) {
  fallocate_function next = (fallocate_function)dlsym(RTLD_NEXT, "posix_fallocate");
  if (next == NULL) return ENOSYS;
  const char *prefix = getenv("CDK_TRITON_SHARED_MEMORY"), *limit = getenv("CDK_TRITON_SHARED_MEMORY_BYTES");
  struct stat before;
  if (prefix == NULL || limit == NULL || !is_counted(descriptor, prefix) || fstat(descriptor, &before) != 0)
    return next(descriptor, offset, length);
  /* Reserved first, counted then: of instances that start at the same time, one sees the bytes of all. */
  int error = next(descriptor, offset, length);
  if (error == 0 && bytes_of_all(prefix) > strtoull(limit, NULL, 10)) {
    error = ENOSPC;
    if (ftruncate(descriptor, before.st_size) != 0) return EIO;
  }
  return error;
}
