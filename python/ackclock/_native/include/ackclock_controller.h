/* A congestion controller in a shared library, for `ackclock run --controller`.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
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
#define ACKCLOCK_CONTROLLER_ABI 2

/* ssthresh before the first reduction; no pacing rate; no RTT, no time. */
#define ACKCLOCK_INFINITE 0x7fffffffu
#define ACKCLOCK_UNPACED UINT64_MAX
#define ACKCLOCK_NONE UINT64_MAX

/* What a controller needs of the connection around it, or'ed together. */
#define ACKCLOCK_NEEDS_CONTROL 1u    /* on_control is called in place of on_ack and the recovery rule */
#define ACKCLOCK_NEEDS_RATE 2u       /* delivery rates; the word `since_sent` */
#define ACKCLOCK_NEEDS_PACING 4u     /* the sender paces by `pacing_rate` */
#define ACKCLOCK_NEEDS_EXACT_ECN 8u  /* each mark is echoed exactly (RFC 8257) */
#define ACKCLOCK_NEEDS_L4S 16u       /* accurate ECN (RFC 9768), ECT(1) (RFC 9331) */
#define ACKCLOCK_NEEDS_REDUCES 32u   /* `reduces` is asked after on_ack */
#define ACKCLOCK_NEEDS_OWN_START 64u /* its start is not the slow start of RFC 5681 */

/* Congestion states. */
#define ACKCLOCK_OPEN 0u
#define ACKCLOCK_DISORDER 1u
#define ACKCLOCK_CWR 2u
#define ACKCLOCK_RECOVERY 3u
#define ACKCLOCK_LOSS 4u

/* Bits of `flags` of an ACK. */
#define ACKCLOCK_ACK_CWND_LIMITED 1u /* the window limited the sender since the last ACK */
#define ACKCLOCK_ACK_PACED 2u        /* the sender paces its packets */
#define ACKCLOCK_ACK_ECE 4u          /* it echoes a mark */
#define ACKCLOCK_ACK_DUP 8u          /* it is a duplicate ACK (RFC 5681) */
#define ACKCLOCK_ACK_SLOW_PATH 16u   /* SACK blocks, another window than before, or ECE */
#define ACKCLOCK_ACK_RATE 32u        /* `rate` is filled in */
#define ACKCLOCK_RATE_APP_LIMITED 64u
#define ACKCLOCK_RATE_RETRANS 128u
#define ACKCLOCK_RATE_ACK_DELAYED 256u

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

/* A sample of the delivery rate, over the flight of the newest segment that an ACK covers. */
struct ackclock_rate {
	uint64_t interval;  /* 0: not valid */
	uint64_t send_elapsed, ack_elapsed;
	uint64_t prior_delivered, prior_time;
	uint64_t total_delivered, total_lost; /* of the connection */
	uint32_t delivered, delivered_ce, lost, tx_in_flight;
};

/* An ACK. */
struct ackclock_ack {
	uint64_t now;
	uint64_t rtt;      /* of the newest segment covered; ACKCLOCK_NONE: no sample */
	uint64_t srtt;     /* 0: no sample yet */
	uint64_t min_rtt;  /* ACKCLOCK_NONE: no sample yet */
	uint64_t departs_in;
	uint64_t acked_bytes;
	uint64_t snd_una, snd_nxt;
	uint32_t delivered, delivered_ce; /* segments that it delivered; of these, marked */
	uint32_t since_sent;  /* delivered since the newest segment covered was sent */
	uint32_t covered;     /* segments that the cumulative ACK covers */
	uint32_t sacked;      /* SACKed above it */
	uint32_t prior_in_flight, in_flight;
	uint32_t smss;        /* payload of a full segment, bytes */
	uint32_t acked;       /* segments that count for growth */
	uint32_t newly_lost;
	uint32_t state;       /* congestion state */
	uint32_t flags;
	struct ackclock_rate rate;
};

/* What the simulator does for a connection. */
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
	uint32_t buffer_windows; /* windows for which the send buffer is to have room; 0: two */
	uint32_t reserved;

	void *(*open)(const struct ackclock_host *host); /* NULL: no memory */
	void (*close)(void *cc);
	const char *(*said)(void *cc);

	int (*on_syn_acked)(void *cc, uint64_t rtt);
	int (*on_start)(void *cc, struct ackclock_window *, uint64_t now, uint64_t srtt, uint32_t smss);
	int (*on_sample)(void *cc, struct ackclock_window *, const struct ackclock_ack *); /* every ACK, before losses are looked for */
	int (*on_ack)(void *cc, struct ackclock_window *, const struct ackclock_ack *);    /* outside recovery: grow */
	int (*reduces)(void *cc, int *asked);
	int (*ssthresh)(void *cc, const struct ackclock_window *, uint32_t in_flight, int marked, uint32_t *target);
	int (*on_rto)(void *cc, struct ackclock_window *, uint64_t now);
	int (*on_state)(void *cc, struct ackclock_window *, uint32_t state, uint64_t now);
	int (*on_recovered)(void *cc, struct ackclock_window *, uint64_t now);
	int (*on_ecn)(void *cc, struct ackclock_window *, const struct ackclock_ack *, int *reacts);
	int (*undo_cwnd)(void *cc, const struct ackclock_window *, uint32_t *cwnd);
	int (*on_tx_start)(void *cc, struct ackclock_window *, uint64_t now, uint64_t idle, uint64_t snd_nxt);
	int (*on_restart)(void *cc, struct ackclock_window *, uint64_t snd_nxt);
	int (*on_control)(void *cc, struct ackclock_window *, const struct ackclock_ack *);
	int (*on_totals)(void *cc, uint64_t delivered, uint64_t lost, uint64_t delivered_time);
	int (*holds_back)(void *cc, int *held);
	int (*variables_of)(void *cc, double *values);
};

/* `options`: lines NAME=VALUE. On failure NULL, and `why` has a line about it. */
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room);

#endif
