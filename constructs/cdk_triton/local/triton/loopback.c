/* Keeps tritonserver's sockets on this machine.
 *
 * The SageMaker endpoint of tritonserver listens on every interface and has no option to change that. Preloaded
 * (LD_PRELOAD), this library turns a wildcard address given to bind(2) into the loopback address; any other address
 * stays as it is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

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
