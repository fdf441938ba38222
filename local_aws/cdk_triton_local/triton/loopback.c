/* Keeps tritonserver's sockets on this machine and for its user, and notes the directories that it leaves in /tmp.
 *
 * The SageMaker endpoint of tritonserver listens on every interface and has no option to change that. Preloaded
 * (LD_PRELOAD), this library turns a wildcard address given to bind(2) into the loopback address; any other address
 * stays as it is.
 *
 * Whoever reaches the SageMaker endpoint can have it load a Python model, which is a program, from any directory. So
 * accept(2) closes connections of other users than this one and root. The kernel lists the owner of each socket in
 * /proc/net/tcp; one that was closed already has no inode there, and its owner is not known.
 *
 * The Python backend unpacks execution environments into /tmp/python_env_XXXXXX, whatever TMPDIR says
 * (python_backend/src/pb_env.cc), and a server that is killed leaves them there. Their names are appended to the file
 * $CDK_TRITON_TEMPORARY.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char environments[] = "/tmp/python_env_";

char *mkdtemp(char *name) {
  char *(*next)(char *) = (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp");
  if (next == NULL) {
    errno = ENOSYS;
    return NULL;
  }
  char *made = next(name);
  const char *list = getenv("CDK_TRITON_TEMPORARY");
  if (made != NULL && list != NULL && strncmp(made, environments, sizeof environments - 1) == 0) {
    int error = errno;
    int descriptor = open(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor >= 0) {
      dprintf(descriptor, "%s\n", made);
      close(descriptor);
    }
    errno = error;
  }
  return made;
}

static int port_of(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET) return ntohs(((const struct sockaddr_in *)address)->sin_port);
  return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
}

/* How many sockets of a table connect two ports; *denied is set if one is not of this user or root. */
static int owners(const char *table, unsigned from, unsigned to, int *denied) {
  char line[512];
  int found = 0;
  FILE *file = fopen(table, "re");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned local, remote, owner;
    unsigned long inode;
    if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %*x %*x:%*x %*x:%*x %*x %u %*d %lu", &local, &remote,
               &owner, &inode) != 4)
      continue;
    if (local != from || remote != to) continue;
    found++;
    if (inode == 0 || (owner != geteuid() && owner != 0)) *denied = 1;
  }
  fclose(file);
  return found;
}

static int is_of_another_user(int descriptor) {
  struct sockaddr_storage peer, own;
  socklen_t peer_length = sizeof peer, own_length = sizeof own;
  if (getsockname(descriptor, (struct sockaddr *)&own, &own_length) != 0) return 1;
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return 0;
  if (getpeername(descriptor, (struct sockaddr *)&peer, &peer_length) != 0) return 1;
  int denied = 0;
  int found = owners("/proc/net/tcp", port_of(&peer), port_of(&own), &denied);
  found += owners("/proc/net/tcp6", port_of(&peer), port_of(&own), &denied);
  return denied || found == 0;
}

typedef int (*accept_function)(int, struct sockaddr *, socklen_t *, int);

int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags) {
  accept_function next = (accept_function)dlsym(RTLD_NEXT, "accept4");
  if (next == NULL) {
    errno = ENOSYS;
    return -1;
  }
  socklen_t room = length == NULL ? 0 : *length;
  for (;;) {
    int accepted = next(descriptor, address, length, flags);
    if (accepted < 0) return accepted;
    int error = errno;
    int denied = is_of_another_user(accepted);
    errno = error;
    if (!denied) return accepted;
    close(accepted);
    if (length != NULL) *length = room;
  }
}

int accept(int descriptor, struct sockaddr *address, socklen_t *length) {
  return accept4(descriptor, address, length, 0);
}

typedef int (*bind_function)(int, const struct sockaddr *, socklen_t);

int bind(int descriptor, const struct sockaddr *address, socklen_t length) {
  bind_function next = (bind_function)dlsym(RTLD_NEXT, "bind");
  if (next == NULL) {
    errno = ENOSYS;
    return -1;
  }
  if (address != NULL && address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in copy;
    memcpy(&copy, address, sizeof copy);
    if (copy.sin_addr.s_addr == htonl(INADDR_ANY)) {
      copy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      return next(descriptor, (const struct sockaddr *)&copy, sizeof copy);
    }
  }
  if (address != NULL && address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 copy;
    memcpy(&copy, address, sizeof copy);
    if (IN6_IS_ADDR_UNSPECIFIED(&copy.sin6_addr)) {
      copy.sin6_addr = in6addr_loopback;
      return next(descriptor, (const struct sockaddr *)&copy, sizeof copy);
    }
  }
  return next(descriptor, address, length);
}
