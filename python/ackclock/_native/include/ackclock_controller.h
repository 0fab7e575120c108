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
#define ACKCLOCK_CONTROLLER_ABI 3

/* ssthresh before the first reduction; no pacing rate; no RTT or time. */
#define ACKCLOCK_INFINITE 0x7fffffffu
#define ACKCLOCK_UNPACED UINT64_MAX
#define ACKCLOCK_NONE UINT64_MAX

/* Requirements of a controller on the connection around it, or'ed together. */
#define ACKCLOCK_NEEDS_CONTROL 1u /* The controller itself sets the window and the pacing rate on every ACK (Linux cong_control): on_control replaces on_ack and the recovery rule. */
#define ACKCLOCK_NEEDS_RATE 2u /* Delivery rates are kept, at the cost of a stamp per segment: rate and since_sent are filled in. */
#define ACKCLOCK_NEEDS_PACING 4u /* The sender paces at the window's pacing_rate, regardless of the stack's settings. */
#define ACKCLOCK_NEEDS_EXACT_ECN 8u /* The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2). */
#define ACKCLOCK_NEEDS_L4S 16u /* The controller requests accurate ECN (RFC 9768) and accepts no other form of ECN; its packets carry ECT(1) (RFC 9331). */
#define ACKCLOCK_NEEDS_REDUCES 32u /* The controller may itself request a reduction, through reduces. */
#define ACKCLOCK_NEEDS_OWN_START 64u /* The controller has its own start-up algorithm instead of the slow start of RFC 5681, so no other slow start can replace it. */
#define ACKCLOCK_NEEDS_HYSTART 256u /* HyStart is the controller's slow start, unless the stack specifies another. */
#define ACKCLOCK_NEEDS_UNLIMITED 512u /* The window grows even while it does not limit the sender. */
#define ACKCLOCK_NEEDS_IDLE 1024u /* The controller is notified of segments that arrive while nothing is outstanding, through on_idle. */
#define ACKCLOCK_NEEDS_WATCHES_APPLICATION 2048u /* The sender checks for an application limit at every ACK and timer, and not only when the application writes (draft-ietf-ccwg-bbr §4.1.2.4). */
#define ACKCLOCK_NEEDS_LOSSES 4096u /* The controller is notified of each lost segment, through on_lost and on_repaired; this requires delivery rates, which are then kept. */

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
	uint32_t delivered; /* Segments delivered over interval: those of a whole flight, not only of this ACK. */
	uint64_t interval; /* Length of the sample: the larger of send_elapsed and ack_elapsed. Zero if the sample is invalid because it is shorter than the minimum RTT, which only an incorrect ACK can cause. */
	uint64_t send_elapsed; /* Time over which the delivered segments were sent. */
	uint64_t ack_elapsed; /* Time over which the delivered segments were acknowledged. */
	uint64_t prior_delivered; /* Delivered count of the connection when the newest segment that the ACK covers was sent (P.delivered). */
	uint64_t prior_time; /* Time of the connection's last delivery when that segment was sent (P.delivered_time). */
	uint64_t total_delivered; /* Delivered count of the connection now (C.delivered). */
	uint64_t total_lost; /* Segments marked lost on the connection; a segment marked twice counts twice (C.lost). */
	uint32_t delivered_ce; /* Segments of delivered that carried a mark. */
	uint32_t lost; /* Segments marked lost between that segment's transmission and now (RS.lost). */
	uint32_t tx_in_flight; /* Segments in flight just after that segment was sent, including the segment itself (RS.tx_in_flight). */
	uint32_t is_app_limited; /* The application, not the window, limited the sender when that segment was sent. */
	uint32_t is_retrans; /* Whether that segment was a retransmission. */
	uint32_t is_ack_delayed; /* The ACK may have been delayed by a delayed-ACK timer: it covers a single segment that is shorter than SMSS. */
	uint32_t is_probe_ack; /* The ACK covers the end of a tail loss probe that retransmitted old data; whether the original or the probe arrived is not known yet. */
};

/* An ACK. Flags are 0 or 1; states are ACKCLOCK_OPEN and so on. rtt and min_rtt are ACKCLOCK_NONE if there is no RTT. */
struct ackclock_ack {
	uint64_t now; /* Time of arrival. */
	uint32_t newly_acked; /* Segments delivered by this ACK, before loss detection: cumulatively acknowledged or newly SACKed, each once. */
	uint32_t newly_acked_ce; /* Delivered segments to which a congestion echo applies: with accurate ECN the newly reported marks, otherwise all segments if the ACK carries ECE. */
	uint32_t since_sent; /* Segments delivered since the newest segment that this ACK covers was sent; zero if delivery rates are not kept. */
	uint32_t covered; /* Segments newly covered by the cumulative ACK, including those SACKed before. At the end of a recovery far more than newly_acked. */
	uint32_t sacked; /* SACKed segments above the cumulative ACK. */
	uint64_t acked_bytes; /* Bytes by which the cumulative ACK advanced. The value jumps at the end of a recovery. */
	uint64_t rtt; /* RTT of the newest segment that this ACK covers, cumulatively or by SACK, or of the echoed timestamp if a covered segment was retransmitted; absent if the ACK gives no sample. */
	uint64_t srtt; /* Smoothed RTT; zero before the first sample. */
	uint64_t min_rtt; /* Minimum RTT of the connection so far; infinite before the first sample. */
	uint32_t prior_in_flight; /* Segments in flight before this ACK. */
	uint32_t left_in_flight; /* Segments in flight after this ACK, before loss detection. */
	uint64_t snd_una; /* First unacknowledged offset after this ACK. */
	uint64_t snd_nxt; /* Next offset to send. */
	uint32_t cwnd_limited; /* The window limited the sender since the last ACK (RFC 7661). A controller must not grow the window when this is false. */
	uint32_t window_held; /* cwnd itself held data back in this round trip or the previous one. Stricter than cwnd_limited, which in slow start requires only half of cwnd to be used. */
	uint32_t paced; /* The sender paces its packets. */
	uint64_t departs_in; /* Time until the pacer allows the next segment to be sent; zero if it may be sent at once. */
	uint32_t smss; /* Payload of a full segment, bytes. */
	uint32_t ece; /* The ACK echoes a congestion mark (ECE). */
	uint32_t prior_state; /* Congestion state before this ACK. */
	uint32_t is_dup; /* Duplicate ACK: it acknowledges nothing new, carries no data and does not change the window (RFC 5681 §2). */
	uint32_t slow_path; /* The ACK has SACK blocks, a changed window or ECE: its header differs from the one that Linux's header prediction expects. */
	uint32_t acked; /* Segments that count towards growth: those delivered, or 1 in a stack that counts ACKs. */
	uint32_t delivered; /* Segments delivered: newly_acked and, without SACK, the segment that a duplicate ACK implies. */
	uint32_t delivered_ce; /* Delivered segments that carried a mark: their exact number with exact or accurate ECN, otherwise all of them if the ACK carries ECE. */
	uint32_t newly_lost; /* Segments newly marked lost, including lost retransmissions; 0 before loss detection. */
	uint32_t in_flight; /* Segments in flight after the ACK, excluding those newly marked lost. */
	uint32_t ca_state; /* Congestion state after this ACK; before loss detection, the state before this ACK. */
	struct ackclock_rate rate; /* Delivery rate sample; absent if delivery rates are not kept or this ACK gives no sample. */
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

	/* The handshake is complete. accurate: accurate ECN was negotiated. */
	int (*on_negotiated)(void *cc, uint32_t accurate);
	/* The SYN of the connecting end is acknowledged. rtt: RTT sample of the SYN. Linux: pkts_acked, before init. */
	int (*on_syn_acked)(void *cc, uint64_t rtt);
	/* The connection is established. srtt: RTT of the handshake; zero if the handshake gave no sample. Linux: init. */
	int (*on_start)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t srtt, uint32_t smss);
	/* RTT sample and delivered segments of an ACK. Called for every ACK, in every state, before loss detection. Linux: pkts_acked. */
	int (*on_sample)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack);
	/* The ACK echoes a congestion mark. Return true to react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2). Linux: in_ack_event, CA_ACK_ECE. */
	int (*on_ecn)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack, int *answer);
	/* A segment or its retransmission is marked lost. Called once per mark, when the mark is set, if the controller needs losses. delivered: segments delivered on the connection so far; lost: segments marked lost since the segment's last transmission, including the segment itself; tx_in_flight: segments in flight just after that transmission; is_app_limited: whether the application limited the sender at that transmission. Linux: skb_marked_lost, of Google's version 3. */
	int (*on_lost)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t delivered, uint32_t lost, uint32_t tx_in_flight, uint32_t is_app_limited);
	/* A tail loss probe has repaired a loss that was not detected otherwise, and a reduction follows. delivered: segments delivered on the connection so far; is_app_limited: whether the application limited the sender at the segment's first transmission. Called if the controller needs losses. Linux: cwnd_event, CA_EVENT_TLP_RECOVERY, of Google's version 3. */
	int (*on_repaired)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t delivered, uint32_t is_app_limited);
	/* Return the target window after a congestion event, in segments, at least 2. Called once per reduction, before window changes. in_flight: the FlightSize that RFC 5681 §3.1 halves, in segments. Linux: ssthresh. */
	int (*ssthresh)(void *cc, const struct ackclock_window *window, uint32_t in_flight, uint32_t *answer);
	/* Called instead of the hook above if the reduction is caused by a mark and not by a loss. Linux: ssthresh. */
	int (*ssthresh_for_mark)(void *cc, const struct ackclock_window *window, uint32_t in_flight, uint32_t *answer);
	/* Return the minimum window for Linux's rate halving, in segments. Default: ssthresh. Linux: min_cwnd, before 3.2. */
	int (*min_cwnd)(void *cc, uint32_t ssthresh, uint32_t *answer);
	/* The retransmission timer expired. now: current time, later than that of the last ACK. ssthresh is called next. */
	int (*on_timer)(void *cc, uint64_t now);
	/* A retransmission timeout occurred: ssthresh has been set, and cwnd is about to be set to the loss window. Linux: cwnd_event, CA_EVENT_LOSS. */
	int (*on_rto)(void *cc, struct ackclock_window *window, uint64_t now);
	/* Totals of the connection: segments delivered and marked lost so far, and the time of the last delivery. Called if delivery rates are kept: before the state becomes Loss, and when a new segment is sent with nothing else outstanding, which resets that time. Linux: tcp_sock.delivered, lost, delivered_mstamp. */
	int (*on_totals)(void *cc, uint64_t delivered, uint64_t lost, uint64_t delivered_time);
	/* The congestion state is set to state, which may equal the current state. Linux: set_state. */
	int (*on_state)(void *cc, struct ackclock_window *window, uint32_t state, uint64_t now);
	/* A reduction ended, and the recovery rule has set the window. Linux: cwnd_event, CA_EVENT_COMPLETE_CWR. */
	int (*on_recovered)(void *cc, struct ackclock_window *window, uint64_t now);
	/* The reduction proved unnecessary. Return the window to restore, in segments. Linux: undo_cwnd. */
	int (*undo_cwnd)(void *cc, const struct ackclock_window *window, uint32_t *answer);
	/* Grow the window for an ACK that arrived outside recovery. Called only for ACKs that deliver data, in Open, Disorder and Loss. Not called if the controller needs control. Linux: cong_avoid. */
	int (*on_ack)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack);
	/* Return true to reduce the window as for a loss, in state CWR, unless a reduction is in progress. Called after on_ack if the controller needs reduces. Linux: tcp_enter_cwr out of cong_avoid. */
	int (*reduces)(void *cc, int *answer);
	/* Set the window and the pacing rate. Called on every ACK, in every state, after loss detection, if the controller needs control. Linux: cong_control. */
	int (*on_control)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack);
	/* Return true if the controller keeps less data in flight than it could, in order to probe the path. Rate samples of the data in flight then count as application-limited. Called after on_control. Linux: tcp_sock.app_limited. */
	int (*holds_back)(void *cc, int *answer);
	/* A segment that acknowledges nothing new arrived while nothing was outstanding. slow_path: the segment carries data or changes the window. Called if the controller needs idle. Linux: in_ack_event. */
	int (*on_idle)(void *cc, uint64_t now, uint64_t snd_una, uint32_t slow_path);
	/* The application was idle for longer than the RTO, and the window is about to be reduced for that reason. Linux: cwnd_event, CA_EVENT_CWND_RESTART. */
	int (*on_restart)(void *cc, struct ackclock_window *window, uint64_t snd_nxt);
	/* A segment, new or retransmitted, is about to be sent with nothing in flight: all earlier data was acknowledged or is considered lost. idle: time since the last transmission; snd_nxt: offset of the next new data. If delivery rates are kept, called only after an application-limited period. Linux: cwnd_event, CA_EVENT_TX_START. */
	int (*on_tx_start)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t idle, uint64_t snd_nxt);
};

/* `options`: lines NAME=VALUE. Returns NULL on failure and writes a line about it to `why`, which has `room` bytes. */
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room);

#endif
