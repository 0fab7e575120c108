/* A congestion controller in a shared library, for `ackclock run --controller`.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Written by tools/contract.py from crates/cc/src/controller/contract.rs: change that and tools/templates/ackclock_controller.h, not this file.
 *
 * The library exports one function, `ackclock_controller`. It is called once for each library that is loaded; `open` creates the
 * controller of a connection. Calls for one connection are sequential; calls for different connections may be made concurrently from
 * several threads, so data shared between connections must not change after `ackclock_controller` has returned.
 *
 * Units: windows and counts in segments, times in ns from the start of the run, rates in bytes per second, offsets in bytes of the
 * stream (the first byte is 1).
 */
#ifndef ACKCLOCK_CONTROLLER_H
#define ACKCLOCK_CONTROLLER_H

#include <stddef.h>
#include <stdint.h>

/* Version of this interface. A library with another version is refused. */
#define ACKCLOCK_CONTROLLER_ABI @ABI@

/* ssthresh before the first reduction; no pacing rate; no RTT or time. */
#define ACKCLOCK_INFINITE 0x7fffffffu
#define ACKCLOCK_UNPACED UINT64_MAX
#define ACKCLOCK_NONE UINT64_MAX

/* Requirements of a controller on the connection around it, or'ed together. */
@NEEDS@

/* Congestion states. */
#define ACKCLOCK_OPEN 0u
#define ACKCLOCK_DISORDER 1u
#define ACKCLOCK_CWR 2u
#define ACKCLOCK_RECOVERY 3u
#define ACKCLOCK_LOSS 4u

/* The window, which hooks may set. */
struct ackclock_window {
	uint32_t cwnd;
	uint32_t ssthresh;
	uint32_t cwnd_cnt;    /* segments acknowledged since cwnd last grew */
	uint32_t cwnd_clamp;  /* maximum of cwnd */
	uint32_t prior_cwnd;  /* cwnd before the last reduction */
	uint32_t reserved;
	uint64_t pacing_rate; /* ACKCLOCK_UNPACED: none */
};

/* Delivery rate sample over the flight of the newest segment that an ACK covers. Flags are 0 or 1. */
struct ackclock_rate {
	uint32_t is_given; /* 0: there is no sample, and the other members are invalid */
@RATE@
};

/* An ACK. Flags are 0 or 1; states are ACKCLOCK_OPEN and so on. rtt and min_rtt are ACKCLOCK_NONE if there is no RTT. */
struct ackclock_ack {
@ACK@
};

/* Services of the simulator for a connection. */
struct ackclock_host {
	void *run;
	uint64_t (*random)(void *run); /* 64 random bits; the same in every run with the same seed */
	uint64_t (*now)(void *run);    /* simulated time, for hooks without the argument `now` */
};

/* A controller. Hooks return 0, or another number after a failure, whose message `said` returns. A hook that is NULL is not called. */
struct ackclock_controller {
	uint32_t abi;          /* ACKCLOCK_CONTROLLER_ABI */
	uint32_t needs;        /* ACKCLOCK_NEEDS_... */
	const char *name;      /* name of the random stream, and name in messages */
	const char *variables; /* comma-separated names for record.controller, at most 8; NULL: none */
	const char *reads;     /* comma-separated names of files that the controller reads; NULL: none */
	uint32_t buffer_windows; /* size of the send buffer as a multiple of cwnd; 0: two */
	uint32_t slow_packets;   /* pacing rate, bytes/s, from which on a packet has at least two segments; 0: the stack's minimum */

	void *(*open)(const struct ackclock_host *host); /* NULL: no memory */
	void (*close)(void *cc);
	const char *(*said)(void *cc);
	void *(*copy)(void *cc, const struct ackclock_host *host); /* copy in the same state; NULL: it cannot be copied, and `said` of `cc` returns the reason */
	int (*variables_of)(void *cc, double *values);

@HOOKS@
};

/* `options`: lines NAME=VALUE. Returns NULL on failure and writes a line about it to `why`, which has `room` bytes. */
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room);

#endif
