/* Keeps tritonserver's sockets on this machine, and notes the directories that it leaves in /tmp.
 *
 * The SageMaker endpoint of tritonserver listens on every interface and has no option to change that. Preloaded
 * (LD_PRELOAD), this library turns a wildcard address given to bind(2) into the loopback address; any other address
 * stays as it is.
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
