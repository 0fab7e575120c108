/* A simulated link in virtual time, for the tests of transport stacks. One direction; a path there and back is two.
 *
 * Times are nanoseconds since the start of the test and never go back from call to call. The same calls give the same answers.
 * No clock, no thread, no allocation per packet. A link belongs to one thread at a time.
 *
 * Set `now` to the earliest of your deadlines and ack_link_next_event of all links, call ack_link_dequeue until 0, then let your
 * stack act. Late calls change nothing but when you hear: at_ns says when a packet arrived. A link takes packets of any size.
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

/* What a link knows of a packet; its bytes stay with you. */
typedef struct {
    uint64_t id;    /* a number of yours, by which you find the bytes again */
    uint64_t at_ns; /* written by ack_link_dequeue: when it reached the far end */
    uint32_t bytes; /* size on the link, all headers included; at least 1 */
    uint32_t flow;  /* for queues that are fair to flows; small numbers */
    uint8_t ecn;    /* field of the IP header: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced */
    uint8_t data;   /* 1: it has data; 0: only an ACK, spared by a loss model with applies_to = 'data' */
    uint8_t lost;   /* written by ack_link_take_dropped: one of enum ack_lost */
} ack_packet;

enum ack_lost { ACK_ON_THE_WAY = 1, ACK_QUEUE_FULL = 2, ACK_AQM = 3 };

#define ACK_NEVER UINT64_MAX

/* A link from its text (TOML), one key a line, all of which may be left out:
 *
 *   rate = '20 Mbit/s'
 *   delay = '25 ms'                                     one way
 *   queue = { kind = 'drop-tail', limit = '1 BDP' }     or '50 packets'; codel, fq-codel, pie, red, cake, dualpi2, threshold, ...
 *   loss = { kind = 'bernoulli', p = '1 %' }            ahead of the queue; gilbert-elliott, policer, ...
 *   jitter, reorder, capacity, wifi, aggregate, outage, ecn_fault
 *
 * or from a preset: dsl, cable, fibre, bufferbloat, shallow, fq-codel, l4s, datacentre, wifi, mobile, satellite, policed, lossy,
 * outages. All that is drawn follows from `seed`; give two links two seeds. NULL: `why` says in one line what is wrong, and what is
 * allowed, cut to `room`. The page of the crate (cargo doc -p ackclock-link) has a table of the keys. */
ack_link *ack_link_new(const char *text, uint64_t seed, char *why, size_t room);

/* A packet reaches the near end. 0: taken, and the struct may go; above 0: lost, enum ack_lost says why (do not tell your stack);
 * -1: time went back, or no bytes. */
int ack_link_enqueue(ack_link *, uint64_t now_ns, const ack_packet *);

/* When there is something to do next; ACK_NEVER: the link is empty. */
uint64_t ack_link_next_event(const ack_link *);

/* 1: the next packet that has reached the far end by now; 0: there is none; -1: time went back. Call it until 0. */
int ack_link_dequeue(ack_link *, uint64_t now_ns, ack_packet *);

/* 1: a packet that the queue had taken and dropped since (CoDel and the like); 0: there is none. */
int ack_link_take_dropped(ack_link *, ack_packet *);

void ack_link_free(ack_link *);

#ifdef __cplusplus
}
#endif

#endif
