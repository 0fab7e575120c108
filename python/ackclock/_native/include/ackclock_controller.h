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
#define ACKCLOCK_CONTROLLER_ABI 3

/* ssthresh before the first reduction; no pacing rate; no RTT, no time. */
#define ACKCLOCK_INFINITE 0x7fffffffu
#define ACKCLOCK_UNPACED UINT64_MAX
#define ACKCLOCK_NONE UINT64_MAX

/* Needs of a controller towards the connection around it, or'ed together. */
#define ACKCLOCK_NEEDS_CONTROL 1u /* The controller sets window and pacing rate by itself on every ACK (Linux cong_control): on_control is called in place of on_ack and the recovery rule. */
#define ACKCLOCK_NEEDS_RATE 2u /* Delivery rates, which cost a stamp per segment: rate and since_sent are filled in. */
#define ACKCLOCK_NEEDS_PACING 4u /* The sender paces by the window's pacing_rate, regardless of the stack's settings. */
#define ACKCLOCK_NEEDS_EXACT_ECN 8u /* The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2). */
#define ACKCLOCK_NEEDS_L4S 16u /* The controller asks for accurate ECN (RFC 9768) and accepts no other, and its packets carry ECT(1) (RFC 9331). */
#define ACKCLOCK_NEEDS_REDUCES 32u /* The controller may ask for a reduction by itself, by reduces. */
#define ACKCLOCK_NEEDS_OWN_START 64u /* The controller's start is not the slow start of RFC 5681, so that no other can replace it. */
#define ACKCLOCK_NEEDS_HYSTART 256u /* HyStart is the controller's slow start, unless the stack names another. */
#define ACKCLOCK_NEEDS_UNLIMITED 512u /* The window grows even while it does not limit the sender. */
#define ACKCLOCK_NEEDS_IDLE 1024u /* The controller learns of segments that arrive while nothing is outstanding, by on_idle. */
#define ACKCLOCK_NEEDS_WATCHES_APPLICATION 2048u /* The sender checks whether the application leaves its window unfilled also at every ACK and timer, and not only when the application writes (draft-ietf-ccwg-bbr §4.1.2.4). */
#define ACKCLOCK_NEEDS_LOSSES 4096u /* The controller learns of each lost segment, by on_lost and on_repaired; rates are kept for that. */

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
	uint32_t delivered; /* Segments delivered over interval: a flight, not this ACK alone. */
	uint64_t interval; /* The longer one of the times that sending and acknowledging them took; zero if the sample is not valid: shorter than the minimum RTT, which only a wrong ACK can cause. */
	uint64_t send_elapsed; /* Time over which they were sent. */
	uint64_t ack_elapsed; /* Time over which they were acknowledged. */
	uint64_t prior_delivered; /* Delivered count of the connection when the newest segment that the ACK covers was sent (P.delivered). */
	uint64_t prior_time; /* Time when that count was reached. */
	uint64_t total_delivered; /* Delivered count of the connection now (C.delivered). */
	uint64_t total_lost; /* Segments marked lost on the connection; a segment marked twice counts twice (C.lost). */
	uint32_t delivered_ce; /* Segments of delivered that carried a mark. */
	uint32_t lost; /* Segments marked lost between that segment's transmission and now (RS.lost). */
	uint32_t tx_in_flight; /* Segments in flight when that segment had been sent, itself included (RS.tx_in_flight). */
	uint32_t is_app_limited; /* The application, not the window, limited the sender when it was sent. */
	uint32_t is_retrans; /* The segment was a retransmission. */
	uint32_t is_ack_delayed; /* The ACK may have been held back by a delayed-ACK timer: a single segment, shorter than SMSS. */
	uint32_t is_probe_ack; /* The ACK reaches the end of a tail loss probe of old data; whether the original or the probe arrived is not known yet. */
};

/* An ACK. Flags are 0 or 1, states those above; where there is no RTT yet, rtt and min_rtt are ACKCLOCK_NONE. */
struct ackclock_ack {
	uint64_t now; /* Time of arrival. */
	uint32_t newly_acked; /* Segments delivered by this ACK, before loss detection: cumulatively acknowledged or newly SACKed, each once. */
	uint32_t newly_acked_ce; /* Delivered segments to which an echo of congestion applies: all of them under ECE, else none. */
	uint32_t since_sent; /* Segments delivered since the newest segment that this ACK covers was sent; zero where rates are not kept. */
	uint32_t covered; /* Segments that the cumulative ACK covers, those SACKed before included, as a counter of ACKs sees them. After a recovery far more than were delivered. */
	uint32_t sacked; /* SACKed segments above the cumulative ACK. */
	uint64_t acked_bytes; /* Bytes by which the cumulative ACK advanced; after a recovery it jumps. */
	uint64_t rtt; /* RTT of the newest segment that this ACK covers, if none of them was retransmitted. */
	uint64_t srtt; /* Smoothed RTT; zero before the first sample. */
	uint64_t min_rtt; /* Minimum RTT of the connection so far; infinite before the first sample. */
	uint32_t prior_in_flight; /* Segments in flight before this ACK. */
	uint32_t left_in_flight; /* Segments in flight after this ACK, before loss detection. */
	uint64_t snd_una; /* First unacknowledged offset after this ACK. */
	uint64_t snd_nxt; /* Next offset to send. */
	uint32_t cwnd_limited; /* The window limited the sender since the last ACK (RFC 7661). A controller must not grow the window when this is false. */
	uint32_t window_held; /* The window itself held data back in this round trip or the last, in slow start too, where cwnd_limited asks for half of it only. */
	uint32_t paced; /* The sender paces its packets. */
	uint64_t departs_in; /* Time until the pacer lets the next segment leave; zero if it may leave at once. */
	uint32_t smss; /* Payload of a full segment, bytes. */
	uint32_t ece; /* The ACK echoes a mark of congestion (ECE). */
	uint32_t prior_state; /* Congestion state before this ACK. */
	uint32_t is_dup; /* Duplicate ACK: it acknowledges nothing new, carries no data and leaves the window as it is (RFC 5681 §2). */
	uint32_t slow_path; /* SACK blocks, a changed window or ECE: the header differs from the one that Linux's header prediction expects. */
	uint32_t acked; /* Segments that count for growth: those delivered, or 1 in a stack that counts ACKs. */
	uint32_t delivered; /* Segments delivered: newly_acked, with what a duplicate ACK stands for without SACK. */
	uint32_t delivered_ce; /* Delivered segments that carried a mark: their exact number with exact or accurate ECN, else all of them under ECE. */
	uint32_t newly_lost; /* Segments newly marked lost, retransmissions found lost included; 0 before loss detection. */
	uint32_t in_flight; /* Segments in flight after the ACK, without those newly marked lost. */
	uint32_t ca_state; /* Congestion state after this ACK; before loss detection, the state before it. */
	struct ackclock_rate rate; /* Delivery rate, where the controller needs it and this ACK gives a sample. */
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

	/* The handshake is over; accurate: it agreed on accurate ECN. */
	int (*on_negotiated)(void *cc, uint32_t accurate);
	/* The end that connects has its SYN acknowledged, which gave this RTT. Linux: pkts_acked, before init. */
	int (*on_syn_acked)(void *cc, uint64_t rtt);
	/* The connection is established, with this RTT (zero if the handshake gave no sample). Linux: init. */
	int (*on_start)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t srtt, uint32_t smss);
	/* RTT sample and delivery of every ACK, in every state, before loss detection. Linux: pkts_acked. */
	int (*on_sample)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack);
	/* The ACK echoes a mark of congestion. True: react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2). Linux: in_ack_event, CA_ACK_ECE. */
	int (*on_ecn)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack, int *answer);
	/* A segment, or its retransmission, is marked lost: one call each, as the marks are set. delivered: segments delivered on the connection so far; lost: segments marked lost since its last transmission, itself included; tx_in_flight: segments in flight just after that; is_app_limited: the application limited the sender then. Called if the controller needs losses. Linux: skb_marked_lost, of Google's version 3. */
	int (*on_lost)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t delivered, uint32_t lost, uint32_t tx_in_flight, uint32_t is_app_limited);
	/* A tail loss probe has repaired a loss that nothing else detected, and a reduction follows. delivered: segments delivered on the connection so far; is_app_limited: the application limited the sender at the segment's first transmission. Called if the controller needs losses. Linux: cwnd_event, CA_EVENT_TLP_RECOVERY, of Google's version 3. */
	int (*on_repaired)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t delivered, uint32_t is_app_limited);
	/* Asked at a congestion event: the target window in segments, at least 2. Asked once per reduction, before window changes; in_flight is the FlightSize that RFC 5681 §3.1 halves, in segments. Linux: ssthresh. */
	int (*ssthresh)(void *cc, const struct ackclock_window *window, uint32_t in_flight, uint32_t *answer);
	/* Asked in place of the hook above if the reason is a mark and not a loss. Linux: ssthresh. */
	int (*ssthresh_for_mark)(void *cc, const struct ackclock_window *window, uint32_t in_flight, uint32_t *answer);
	/* Asked for the minimum window of Linux's rate halving, given ssthresh, if it differs from ssthresh. Linux: min_cwnd, before 3.2. */
	int (*min_cwnd)(void *cc, uint32_t ssthresh, uint32_t *answer);
	/* The retransmission timer expires: time has passed since the last ACK, and ssthresh is asked next. */
	int (*on_timer)(void *cc, uint64_t now);
	/* A retransmission timeout: ssthresh is set, the window about to collapse. Linux: cwnd_event, CA_EVENT_LOSS. */
	int (*on_rto)(void *cc, struct ackclock_window *window, uint64_t now);
	/* Segments delivered and marked lost on the connection so far, and the time of the last delivery. Called before the state becomes Loss, and, where rates are kept, when a segment leaves with nothing else outstanding, which sets that time. Linux: tcp_sock.delivered, lost, delivered_mstamp. */
	int (*on_totals)(void *cc, uint64_t delivered, uint64_t lost, uint64_t delivered_time);
	/* The congestion state becomes state, which may be the present one. Linux: set_state. */
	int (*on_state)(void *cc, struct ackclock_window *window, uint32_t state, uint64_t now);
	/* A reduction ended and the rule has set the window. Linux: cwnd_event, CA_EVENT_COMPLETE_CWR. */
	int (*on_recovered)(void *cc, struct ackclock_window *window, uint64_t now);
	/* The reduction was a mistake: the window to go back to, in segments. Linux: undo_cwnd. */
	int (*undo_cwnd)(void *cc, const struct ackclock_window *window, uint32_t *answer);
	/* Grow the window for an ACK that arrived outside recovery. Called only for ACKs that deliver data, in Open, Disorder and Loss. Not called if the controller needs control. Linux: cong_avoid. */
	int (*on_ack)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack);
	/* Asked after on_ack: reduce as for a loss, in state CWR, unless a reduction is in progress. Asked if the controller needs reduces. Linux: tcp_enter_cwr out of cong_avoid. */
	int (*reduces)(void *cc, int *answer);
	/* Set window and pacing rate, on every ACK in every state, after loss detection. Called if the controller needs control. Linux: cong_control. */
	int (*on_control)(void *cc, struct ackclock_window *window, const struct ackclock_ack *ack);
	/* Asked after on_control: the controller keeps less in flight than it could, to probe the path. Rate samples of the data in flight then count as application-limited. Linux: tcp_sock.app_limited. */
	int (*holds_back)(void *cc, int *answer);
	/* A segment arrived while nothing was outstanding, and acknowledges nothing new. slow_path: it carries data, or another window. Called if the controller needs idle. Linux: in_ack_event. */
	int (*on_idle)(void *cc, uint64_t now, uint64_t snd_una, uint32_t slow_path);
	/* The application was idle for longer than the RTO, and the window is about to be reset for that. Linux: cwnd_event, CA_EVENT_CWND_RESTART. */
	int (*on_restart)(void *cc, struct ackclock_window *window, uint64_t snd_nxt);
	/* A segment, new or sent again, leaves after idle with nothing in flight: everything was acknowledged, or is considered lost. snd_nxt is the offset of the next new data. Linux: cwnd_event, CA_EVENT_TX_START. */
	int (*on_tx_start)(void *cc, struct ackclock_window *window, uint64_t now, uint64_t idle, uint64_t snd_nxt);
};

/* `options`: lines NAME=VALUE. On failure NULL, and `why` has a line about it. */
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room);

#endif
