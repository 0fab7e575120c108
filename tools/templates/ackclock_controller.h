/* A congestion controller in a shared library, for `ackclock run --controller`.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Written by tools/contract.py from crates/cc/src/controller/contract.rs: change that and tools/templates/ackclock_controller.h, not this file.
 *
 * The library exports one function, `ackclock_controller`. It is called once for each library that is loaded; `open` makes the
 * controller of a connection. Calls for one connection come one after the other; those of several connections may come from several
 * threads at once, so that what is kept outside a connection must not change once `ackclock_controller` has returned.
 *
 * Units: windows and counts in segments, times in ns from the start of the run, rates in bytes per second, offsets in bytes of the
 * stream (the first byte is 1).
 */
#ifndef ACKCLOCK_CONTROLLER_H
#define ACKCLOCK_CONTROLLER_H

#include <stddef.h>
#include <stdint.h>

/* Version of what is declared here. A library of another one is refused. */
#define ACKCLOCK_CONTROLLER_ABI @ABI@

/* ssthresh before the first reduction; no pacing rate; no RTT, no time. */
#define ACKCLOCK_INFINITE 0x7fffffffu
#define ACKCLOCK_UNPACED UINT64_MAX
#define ACKCLOCK_NONE UINT64_MAX

/* Needs of a controller towards the connection around it, or'ed together. */
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
	uint32_t cwnd_clamp;  /* cwnd never grows beyond */
	uint32_t prior_cwnd;  /* at the last reduction */
	uint32_t reserved;
	uint64_t pacing_rate; /* ACKCLOCK_UNPACED: none */
};

/* A sample of the delivery rate, over the flight of the newest segment that an ACK covers. Flags are 0 or 1. */
struct ackclock_rate {
	uint32_t is_given; /* 0: there is none, and nothing else here counts */
@RATE@
};

/* An ACK. Flags are 0 or 1, states those above; where there is no RTT yet, rtt and min_rtt are ACKCLOCK_NONE. */
struct ackclock_ack {
@ACK@
};

/* Services of the simulator for a connection. */
struct ackclock_host {
	void *run;
	uint64_t (*random)(void *run); /* 64 random bits; the same in every run with the same seed */
	uint64_t (*now)(void *run);    /* simulated time, for the hooks that are not told */
};

/* A controller. Hooks return 0, or another number after a failure, of which `said` then tells. A hook that is NULL is not called. */
struct ackclock_controller {
	uint32_t abi;          /* ACKCLOCK_CONTROLLER_ABI */
	uint32_t needs;        /* ACKCLOCK_NEEDS_... */
	const char *name;      /* of its random numbers, and in messages */
	const char *variables; /* names for record.controller, with commas between them, 8 at most; NULL: none */
	const char *reads;     /* names of files that the controller reads, with commas between them; NULL: none */
	uint32_t buffer_windows; /* windows for which the send buffer is to have room; 0: two */
	uint32_t slow_packets;   /* pacing rate, bytes/s, below which one segment is a packet; 0: as the stack is set */

	void *(*open)(const struct ackclock_host *host); /* NULL: no memory */
	void (*close)(void *cc);
	const char *(*said)(void *cc);
	void *(*copy)(void *cc, const struct ackclock_host *host); /* another one in the same state; NULL: there is none, and `said` of `cc` tells why */
	int (*variables_of)(void *cc, double *values);

@HOOKS@
};

/* `options`: lines NAME=VALUE. On failure NULL, and `why` has a line about it. */
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room);

#endif
