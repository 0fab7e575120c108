/* A simulated link in virtual time, for tests of transport stacks. It has one direction; a path in both directions needs two.
 *
 * Times are in nanoseconds since the start of the test and never go back between calls. The same calls give the same results.
 * The link uses no clock, no threads and no allocation per packet. Only one thread at a time may use a link.
 *
 * Set `now` to the earliest of your deadlines and ack_link_next_event of all links, call ack_link_dequeue until it returns 0, then
 * let your stack act. A late call does not change the arrival time, which is in at_ns. A link accepts packets of any size.
 *
 *   cargo rustc --release -p ackclock-link --features c --crate-type staticlib
 *   cc -I crates/link/c test.c target/release/libackclock_link.a -lpthread -ldl -lm
 */
#ifndef ACKCLOCK_LINK_H
#define ACKCLOCK_LINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ack_link ack_link;

/* Packet properties used by a link. You keep the packet's bytes. */
typedef struct {
    uint64_t id;    /* identifier of your choice, with which you find the bytes again */
    uint64_t at_ns; /* set by ack_link_dequeue: arrival time at the far end */
    uint32_t bytes; /* size on the link with all headers; at least 1 */
    uint32_t flow;  /* flow number for fair queues; use small numbers */
    uint8_t ecn;    /* ECN field of the IP header: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced */
    uint8_t data;   /* 1: the packet has data; 0: only an ACK, which loss models with applies_to = 'data' spare */
    uint8_t lost;   /* set by ack_link_take_dropped: a value of enum ack_lost */
} ack_packet;

enum ack_lost { ACK_ON_THE_WAY = 1, ACK_QUEUE_FULL = 2, ACK_AQM = 3 };

#define ACK_NEVER UINT64_MAX

/* Create a link from its text (TOML), one key per line. All keys are optional:
 *
 *   rate = '20 Mbit/s'
 *   delay = '25 ms'                                     one way
 *   queue = { kind = 'drop-tail', limit = '1 BDP' }     or '50 packets'; codel, fq-codel, pie, red, cake, dualpi2, threshold, ...
 *   loss = { kind = 'bernoulli', p = '1 %' }            ahead of the queue; gilbert-elliott, policer, ...
 *   jitter, reorder, capacity, wifi, aggregate, outage, ecn_fault
 *
 * or from a preset: dsl, cable, fibre, bufferbloat, shallow, fq-codel, l4s, datacentre, wifi, mobile, satellite, policed, lossy,
 * outages. Random draws depend only on `seed`; give each link its own seed. Returns NULL on an error; `why` then has one line with the
 * error and the allowed values, truncated to `room` bytes. The crate documentation (cargo doc -p ackclock-link) lists the keys. */
ack_link *ack_link_new(const char *text, uint64_t seed, char *why, size_t room);

/* Hand a packet to the near end. Returns 0 if it was accepted, a value of enum ack_lost if it is lost (do not pass this to your stack),
 * or -1 if time went back or the packet has no bytes. The struct is not used after the call. */
int ack_link_enqueue(ack_link *, uint64_t now_ns, const ack_packet *);

/* Returns the time of the link's next event, or ACK_NEVER if the link is empty. */
uint64_t ack_link_next_event(const ack_link *);

/* Returns 1 and the next packet that has reached the far end, 0 if there is none, or -1 if time went backwards. Call it until it returns 0. */
int ack_link_dequeue(ack_link *, uint64_t now_ns, ack_packet *);

/* Returns 1 and a packet that the queue (such as CoDel) had accepted and then dropped, or 0 if there is none. */
int ack_link_take_dropped(ack_link *, ack_packet *);

void ack_link_free(ack_link *);

#ifdef __cplusplus
}
#endif

#endif
