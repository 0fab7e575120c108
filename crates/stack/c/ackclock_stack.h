/* A transport stack as flows of ackclock: what a library implements.
 *
 * A library exports one symbol, `ackclock_stack`, which returns a table of functions. ackclock loads a library only where a command names
 * its file:
 *
 *     ackclock stack check ./libmine.so
 *     ackclock run path.toml --stack ./libmine.so
 *
 * and a flow of path.toml says congestion_control = "stack:NAME:CONTROLLER".
 *
 * The contract, which `ackclock stack check` tests:
 *
 *   - Time is an argument, in ns, and never goes back. A stack reads no clock. One that counts in us or ms rounds `now_ns` down, and rounds
 *     the deadline that it tells up.
 *   - Random numbers follow from `seed` alone.
 *   - No threads, no files, no sockets. What an instance does depends on the calls to this instance alone: nothing is shared by two.
 *     One thread at a time calls into an instance, not always the same one. Instances may be used by several threads at once.
 *   - Whatever bytes arrive, the process survives.
 *   - `transmit` is called until it returns 0, after any other call. Then nothing leaves before `deadline`, unless another function is
 *     called; and once `timer` has been called at the deadline and nothing more leaves, the next deadline is later.
 *
 * This file may be used under the licence of ackclock: MIT or Apache-2.0.
 */
#ifndef ACKCLOCK_STACK_H
#define ACKCLOCK_STACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACK_STACK_ABI 1

/* No deadline; an amount without end; a number that the stack does not know. */
#define ACK_STACK_NONE UINT64_MAX

/* One end of one connection, as the library sees it. */
typedef struct ack_stack ack_stack;

/* What `state` returns. */
enum {
  ACK_STACK_OPENING = 0,
  ACK_STACK_OPEN = 1,   /* the handshake is complete at this end: it may send data */
  ACK_STACK_CLOSED = 2, /* both ends have finished, and this end has nothing left to do but to answer, or to wait */
  ACK_STACK_FAILED = 3
};

/* What `transmit` says of a datagram: its ECN codepoint as in the IP header, and whether it holds data of the application. */
enum { ACK_STACK_NOT_ECT = 0, ACK_STACK_ECT1 = 1, ACK_STACK_ECT0 = 2, ACK_STACK_CE = 3, ACK_STACK_DATA = 4 };

/* What an end is doing. Each number may be ACK_STACK_NONE. */
typedef struct {
  uint64_t window;        /* congestion window, bytes */
  uint64_t in_flight;     /* bytes sent and neither acknowledged nor taken as lost */
  uint64_t ssthresh;      /* slow-start threshold, bytes; ACK_STACK_NONE: not set */
  uint64_t sent;          /* datagrams sent */
  uint64_t lost;          /* of these, taken as lost, or sent again */
  uint64_t acks;          /* acknowledgements received */
  uint64_t acked;         /* bytes of the application that the peer has acknowledged */
  uint64_t latest_rtt_ns; /* of the newest acknowledgement */
  uint64_t srtt_ns;
  uint64_t min_rtt_ns;
  uint64_t pacing_bps;
  uint64_t mtu;           /* largest datagram, bytes, without `header_bytes` */
} ack_sample;

typedef struct {
  uint32_t abi;            /* ACK_STACK_ABI */
  uint32_t header_bytes;   /* on the wire in front of each datagram, which links charge: 28 for IPv4 and UDP, 20 for IPv4 alone */
  uint32_t round_trips;    /* of a handshake, until the client may send data */
  const char *name;        /* of letters, digits, and any of . _ - ; at most 40 */
  const char *version;
  const char *controllers; /* "cubic,bbr", likewise */

  /* A client that opens a connection, or a server that waits for one. `options_json`: an object, the flow's congestion_control_options.
   * NULL if that cannot be: then `reason` has why, in one line with a zero at its end, at most `room` bytes. */
  ack_stack *(*open)(int is_server, const char *controller, const char *options_json, const uint8_t seed[32], uint64_t now_ns,
                     char *reason, size_t room);
  /* A datagram arrived, with this ECN codepoint. */
  void (*datagram)(ack_stack *, uint64_t now_ns, uint8_t ecn, const uint8_t *bytes, size_t len);
  /* The deadline has come. */
  void (*timer)(ack_stack *, uint64_t now_ns);
  /* The next datagram that leaves now: its length, at most `room`; 0: none. `room` is at least 9000. */
  size_t (*transmit)(ack_stack *, uint64_t now_ns, uint8_t *into, size_t room, uint8_t *mark);
  /* When `timer` is to be called, ns; ACK_STACK_NONE: only another call can change anything. */
  uint64_t (*deadline)(const ack_stack *);
  /* The application writes so many more bytes, which may be zeros; any amount, and ACK_STACK_NONE: from now on there is always more. */
  void (*write)(ack_stack *, uint64_t now_ns, uint64_t bytes);
  /* It writes no more. What was written still arrives; of an amount without end only what the stack has taken so far. */
  void (*finish)(ack_stack *, uint64_t now_ns);
  /* Bytes that arrived in order; the application has read them all. */
  uint64_t (*received)(const ack_stack *);
  /* Whether the peer has finished, and all that it wrote is among them. */
  int (*peer_finished)(const ack_stack *);
  /* Of ACK_STACK_FAILED `reason` has why: "idle timeout", "too many gaps", "closed by the peer", "refused" have names of their own in
   * tables, other reasons are errors of the stack. */
  int (*state)(const ack_stack *, char *reason, size_t room);
  void (*sample)(const ack_stack *, ack_sample *);
  /* Its memory is freed; nothing is sent. */
  void (*close)(ack_stack *);
} ack_stack_v1;

/* The table, which lasts as long as the library is loaded. */
const ack_stack_v1 *ackclock_stack(void);

#ifdef __cplusplus
}
#endif

#endif
