/* A small transport for the tests of `ackclock stack check`: one-way go-back-N with a fixed window. With BREAKS defined as one of the
 * rules below it breaks that rule. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ackclock_stack.h"

#define NOTHING 0
#define CLOCK 1     /* its packets depend on its own clock */
#define EPOCH 2     /* on the start time of the simulation */
#define RANDOM 3    /* on the process */
#define SHARED 4    /* on other instances */
#define THREAD 5    /* it starts a thread */
#define SPINS 6     /* its deadline stays in the past */
#define EARLY 7     /* it sends before its deadline */
#define CRASHES 8   /* unexpected bytes end the process */
#define HANGS 9     /* unexpected bytes make it hang */
#define SLOW 10     /* it has a window of one packet */
#define TWICE 11    /* it sends everything twice */
#define TRIPS 12    /* its handshake takes two round trips */
#define WRITES 13   /* it writes past the end of the datagram buffer */
#define NAMELESS 14 /* it has no name */
#define NEWER 15    /* it was built with another header version */
#ifndef BREAKS
#define BREAKS NOTHING
#endif

#define PAYLOAD 1200
#define RTO 250000000ULL
enum { HELLO = 1, WELCOME, DATA, ACK };

struct ack_stack {
  int is_server, state, answers, forever, finishes, fails;
  uint64_t total, next, acked, received, resend_at, window, sent, lost, last, start, trips;
  int64_t ends;
};

struct packet {
  uint64_t kind, number, len, ends;
};

static int instances;
static void *idle(void *unused) {
  struct timespec second = {1, 0};
  nanosleep(&second, NULL);
  return unused;
}

static ack_stack *stack_open(int is_server, const char *controller, const char *options, const uint8_t seed[32], uint64_t now,
                             char *reason, size_t room) {
  if (strcmp(options, "{}")) {
    snprintf(reason, room, "no options");
    return NULL;
  }
  ack_stack *s = calloc(1, sizeof(*s));
  (void)controller, (void)seed;
  s->is_server = is_server, s->ends = -1, s->window = BREAKS == SLOW ? 1 : 100, s->start = now, s->resend_at = ACK_STACK_NONE;
  if (!is_server) s->answers = HELLO, s->resend_at = now + RTO;
  instances++;
  if (BREAKS == THREAD) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    pthread_detach(thread);
  }
  return s;
}

static void stack_datagram(ack_stack *s, uint64_t now, uint8_t ecn, const uint8_t *bytes, size_t len) {
  struct packet p;
  (void)ecn;
  if (len < sizeof(p)) {
    if (BREAKS == CRASHES) abort();
    while (BREAKS == HANGS) {
    }
    return;
  }
  memcpy(&p, bytes, sizeof(p));
  if (s->is_server && p.kind == HELLO) {
    s->state = ACK_STACK_OPEN, s->answers = WELCOME;
  } else if (!s->is_server && p.kind == WELCOME) {
    if (BREAKS == TRIPS && s->trips++ < 1) {
      s->answers = HELLO;
      return;
    }
    if (s->state == ACK_STACK_OPENING) s->state = ACK_STACK_OPEN, s->resend_at = ACK_STACK_NONE;
  } else if (s->is_server && p.kind == DATA && len == sizeof(p) + p.len && p.len <= PAYLOAD) {
    if (p.number == s->received) s->received += p.len;
    if (p.ends < (1ULL << 60)) s->ends = (int64_t)p.ends;
    s->answers = ACK;
  } else if (!s->is_server && p.kind == ACK && p.number > s->acked && p.number <= s->next) {
    s->acked = p.number, s->resend_at = s->acked < s->next ? now + RTO : ACK_STACK_NONE;
    if (s->finishes && s->acked == s->total) s->state = ACK_STACK_CLOSED;
  }
}

static void stack_timer(ack_stack *s, uint64_t now) {
  if (s->resend_at > now || BREAKS == SPINS) return;
  if (s->state == ACK_STACK_OPENING) {
    s->answers = HELLO, s->resend_at = now + RTO;
  } else {
    s->lost++, s->next = s->acked, s->resend_at = ACK_STACK_NONE;
  }
}

static size_t put(ack_stack *s, uint8_t *into, uint64_t kind, uint64_t number, uint64_t len) {
  struct packet p = {kind, number, len, s->finishes ? s->total : ACK_STACK_NONE};
  memset(into, 0, sizeof(p) + len);
  memcpy(into, &p, sizeof(p));
  s->sent++;
  return sizeof(p) + len;
}

static size_t stack_transmit(ack_stack *s, uint64_t now, uint8_t *into, size_t room, uint8_t *mark) {
  uint64_t payload = PAYLOAD;
  if (BREAKS == WRITES && s->state == ACK_STACK_OPEN) memset(into + room, 0, 4);
  if (BREAKS == CLOCK) {
    struct timespec wall;
    clock_gettime(CLOCK_MONOTONIC, &wall);
    payload -= (uint64_t)wall.tv_nsec / 1000 % 100;
  }
  if (BREAKS == RANDOM) payload -= (uintptr_t)s >> (12 + s->sent % 24) & 63; /* the address of its memory, other bits for each packet */
  if (BREAKS == EPOCH) payload -= s->start / 1000000000 % 100;
  if (BREAKS == SHARED) payload -= (uint64_t)instances;
  if (s->answers) {
    int kind = s->answers;
    s->answers = 0;
    return put(s, into, (uint64_t)kind, s->received, 0);
  }
  if (BREAKS == EARLY && s->state == ACK_STACK_OPEN && !s->is_server && now > s->last + 1000000) {
    s->last = now;
    return put(s, into, ACK, 0, 0);
  }
  if (s->is_server || s->state != ACK_STACK_OPEN || s->next - s->acked >= s->window * PAYLOAD) return 0;
  uint64_t left = s->forever ? payload : s->total - s->next, len = left < payload ? left : payload;
  if (!len) return 0;
  if (BREAKS == TWICE && !(s->trips++ % 2)) return put(s, into, DATA, s->next, len);
  size_t bytes = put(s, into, DATA, s->next, len);
  s->next += len;
  if (s->resend_at == ACK_STACK_NONE) s->resend_at = now + RTO;
  *mark = ACK_STACK_DATA;
  return bytes;
}

static uint64_t stack_deadline(const ack_stack *s) { return s->resend_at; }
static void stack_write(ack_stack *s, uint64_t now, uint64_t bytes) {
  (void)now;
  if (bytes == ACK_STACK_NONE) {
    s->forever = 1;
  } else {
    s->total += bytes;
  }
}
static void stack_finish(ack_stack *s, uint64_t now) {
  (void)now;
  if (s->forever) s->total = s->next;
  s->forever = 0, s->finishes = 1;
  if (s->is_server) s->state = ACK_STACK_CLOSED;
}
static uint64_t stack_received(const ack_stack *s) { return s->received; }
static int stack_peer_finished(const ack_stack *s) { return s->is_server && s->ends == (int64_t)s->received; }
static int stack_state(const ack_stack *s, char *reason, size_t room) {
  (void)reason, (void)room;
  return s->state;
}
static void stack_sample(const ack_stack *s, ack_sample *into) {
  memset(into, 0xff, sizeof(*into));
  into->window = s->window * PAYLOAD, into->in_flight = s->next - s->acked, into->sent = s->sent, into->lost = s->lost;
  into->acked = s->acked, into->mtu = PAYLOAD + sizeof(struct packet);
}
static void stack_close(ack_stack *s) {
  instances--;
  free(s);
}

const ack_stack_v1 *ackclock_stack(void) {
  static const ack_stack_v1 table = {
      BREAKS == NEWER ? 2 : ACK_STACK_ABI, 28, 1, BREAKS == NAMELESS ? "" : "toy", "1", "fixed",
      stack_open, stack_datagram, stack_timer, stack_transmit, stack_deadline, stack_write,
      stack_finish, stack_received, stack_peer_finished, stack_state, stack_sample, stack_close};
  return &table;
}
