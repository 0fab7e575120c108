/* Interface of a library with a transport stack that carries flows of ackclock.
 *
 * A library exports one symbol, `ackclock_stack`, which returns a table of functions. ackclock loads a library only if its file is given
 * to a command:
 *
 *     ackclock stack check ./libmine.so
 *     ackclock run path.toml --stack ./libmine.so
 *
 * and a flow of path.toml has congestion_control = "stack:NAME:CONTROLLER".
 *
 * Contract, tested by `ackclock stack check`:
 *
 *   - Time is an argument, in ns, and never goes back. A stack must not read a clock. A stack with a clock in us or ms rounds `now_ns`
 *     down and its deadlines up.
 *   - Random numbers depend only on `seed`.
 *   - A stack uses no threads, files or sockets. The behaviour of an instance depends only on the calls to this instance; instances share
 *     no state. Only one thread at a time calls into an instance, but not always the same one. Different instances may be used by several
 *     threads at once.
 *   - The process must not crash, regardless of the bytes that arrive.
 *   - After any other call, `transmit` is called until it returns 0. Nothing is then sent before `deadline` unless another function is
 *     called. Once `timer` has been called at the deadline and nothing more is to be sent, the next deadline is later.
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

/* No deadline, an endless amount, or a number unknown to the stack. */
#define ACK_STACK_NONE UINT64_MAX

/* One end of a connection; opaque to ackclock. */
typedef struct ack_stack ack_stack;

/* Return values of `state`. */
enum {
  ACK_STACK_OPENING = 0,
  ACK_STACK_OPEN = 1,   /* the handshake is complete at this end, which may send data */
  ACK_STACK_CLOSED = 2, /* both ends have finished, and this end only answers or waits */
  ACK_STACK_FAILED = 3
};

/* Mark of a datagram, set by `transmit`: ECN codepoint as in the IP header, and a flag for application data. */
enum { ACK_STACK_NOT_ECT = 0, ACK_STACK_ECT1 = 1, ACK_STACK_ECT0 = 2, ACK_STACK_CE = 3, ACK_STACK_DATA = 4 };

/* State of one end. Each number may be ACK_STACK_NONE. */
typedef struct {
  uint64_t window;        /* congestion window, bytes */
  uint64_t in_flight;     /* bytes sent and neither acknowledged nor considered lost */
  uint64_t ssthresh;      /* slow-start threshold, bytes; ACK_STACK_NONE: not set */
  uint64_t sent;          /* datagrams sent */
  uint64_t lost;          /* datagrams considered lost or retransmitted */
  uint64_t acks;          /* acknowledgements received */
  uint64_t acked;         /* application bytes that the peer has acknowledged */
  uint64_t latest_rtt_ns; /* RTT sample of the newest acknowledgement */
  uint64_t srtt_ns;
  uint64_t min_rtt_ns;
  uint64_t pacing_bps;
  uint64_t mtu;           /* largest datagram, bytes, without `header_bytes` */
} ack_sample;

typedef struct {
  uint32_t abi;            /* ACK_STACK_ABI */
  uint32_t header_bytes;   /* headers in front of each datagram on the wire: 28 for IPv4 and UDP, 20 for IPv4 alone */
  uint32_t round_trips;    /* round trips of the handshake until the client may send data */
  const char *name;        /* letters, digits, and any of . _ - ; at most 40 characters */
  const char *version;
  const char *controllers; /* such as "cubic,bbr", with the same characters */

  /* Open a client, or a server that waits for a connection. `options_json` is an object with the flow's congestion_control_options.
   * Returns NULL on an error; `reason` then has one zero-terminated line of at most `room` bytes. */
  ack_stack *(*open)(int is_server, const char *controller, const char *options_json, const uint8_t seed[32], uint64_t now_ns,
                     char *reason, size_t room);
  /* Process a datagram that arrived with this ECN codepoint. */
  void (*datagram)(ack_stack *, uint64_t now_ns, uint8_t ecn, const uint8_t *bytes, size_t len);
  /* Process the expiry of the deadline. */
  void (*timer)(ack_stack *, uint64_t now_ns);
  /* Write the next datagram to be sent now. Returns its length, at most `room`, or 0 if there is none. `room` is at least 9000. */
  size_t (*transmit)(ack_stack *, uint64_t now_ns, uint8_t *into, size_t room, uint8_t *mark);
  /* Returns the time at which `timer` is to be called, ns; ACK_STACK_NONE if no timer is armed. */
  uint64_t (*deadline)(const ack_stack *);
  /* Queue `bytes` more application bytes, whose content may be zeros. Any amount is valid; ACK_STACK_NONE makes the data endless. */
  void (*write)(ack_stack *, uint64_t now_ns, uint64_t bytes);
  /* End the application's data. Queued data is still delivered; endless data ends with the bytes that the stack has accepted so far. */
  void (*finish)(ack_stack *, uint64_t now_ns);
  /* Returns the number of bytes received in order. The application reads them at once. */
  uint64_t (*received)(const ack_stack *);
  /* Returns whether the peer has finished and all of its data has been received. */
  int (*peer_finished)(const ack_stack *);
  /* Returns the state. For ACK_STACK_FAILED, `reason` contains the cause. Tables have separate names for "idle timeout", "too many gaps",
   * "closed by the peer" and "refused"; other causes count as stack errors. */
  int (*state)(const ack_stack *, char *reason, size_t room);
  void (*sample)(const ack_stack *, ack_sample *);
  /* Free the instance without sending anything. */
  void (*close)(ack_stack *);
} ack_stack_v1;

/* Returns the table of functions, which must remain valid while the library is loaded. */
const ack_stack_v1 *ackclock_stack(void);

#ifdef __cplusplus
}
#endif

#endif
