// What a bare TCP connection on the loopback interface does, polled at both ends: sockets small | copies
//
// One system call for each message that is sent; a receiver reads until it has all of one. CORE_A and CORE_B say where the two
// sides run.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pingpong.h"

static int end;

static void check(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

static void send_one(const void *from, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t sent = send(end, (const char *)from + at, size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    check(sent >= 0 || errno == EAGAIN || errno == EINTR, "send");
    if (sent > 0) at += sent;
  }
}

static void receive_one(void *into, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t came = recv(end, (char *)into + at, size - at, MSG_DONTWAIT);
    check(came > 0 || (came < 0 && (errno == EAGAIN || errno == EINTR)), "recv");
    if (came > 0) at += came;
  }
}

static void send_window(const void *from, size_t size, int count) {
  for (int i = 0; i < count; i++) send_one(from, size);
}

static void receive_window(void *into, size_t size, int count) {
  for (int i = 0; i < count; i++) receive_one(into, size);
}

int main(int count, char **arguments) {
  if (count < 2) return 1;
  alarm(30);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  check(!bind(listener, (struct sockaddr *)&at, length) && !listen(listener, 1), "listen");
  check(!getsockname(listener, (struct sockaddr *)&at, &length), "getsockname");
  pid_t child = fork();
  if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(child ? "CORE_A" : "CORE_B");
  if (child) {
    end = socket(AF_INET, SOCK_STREAM, 0);
    check(!connect(end, (struct sockaddr *)&at, length), "connect");
  } else {
    end = accept(listener, 0, 0);
    check(end >= 0, "accept");
  }
  check(!setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
  measure(arguments[1], child != 0, 4 << 20);
  if (!child) _exit(0);
  waitpid(child, 0, 0);
  return 0;
}
