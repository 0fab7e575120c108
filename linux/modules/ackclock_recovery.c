// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Reno and CUBIC under other recovery rules; the rest of the kernel is unchanged.
 *
 * A controller with a cong_control hook sets cwnd itself on every ACK, in recovery too. The ones below leave growth to
 * the kernel's own reno or cubic, and set cwnd in CWR and Recovery by one rule:
 *
 *   rh        rate halving (Linux 2.6 to 3.1): one segment less on every second ACK, never more than one above what is
 *             in flight
 *   rfc6675   cwnd is ssthresh from entry to exit (RFC 6675 section 5)
 *   prr_ub    proportional rate reduction (RFC 6937 section 3), with no bound when in flight falls below ssthresh,
 *   prr_crb   with the conservative bound,
 *   prr_ssrb  with the slow-start bound
 *   prr_9937  proportional rate reduction (RFC 9937 section 6)
 *   prr_3_2   as Linux 3.2 had it
 *
 * Differences between the forms of PRR:
 *
 *             divides by                    bound    forced        an ACK that        cwnd at
 *                                                    segment       delivers nothing   the end
 *   RFC 6937  FlightSize                    its own  never         counts             stays
 *   RFC 9937  FlightSize less what was      SafeACK  until one     is skipped         ssthresh
 *             SACKed before                          was sent
 *   3.2       cwnd at entry                 SSRB     at entry      counts             ssthresh
 *
 * A controller with a cong_control hook must do some of the kernel's work itself. This one does it as the kernel does
 * for other controllers: the pacing rate follows cwnd (CUBIC's HyStart reads it), cwnd restarts after an idle RTO, and
 * recovery entered by the reordering timer counts one segment as delivered.
 *
 * Names: <base>_<rule>, e.g. cubic_prr_crb. Written from the RFCs and from descriptions of behaviour.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "ackclock_tree.h"

/* FLAG_DATA_ACKED and FLAG_FORWARD_PROGRESS of net/ipv4/tcp_input.c, which are in no header. */
#define DATA_ACKED 0x04
#define FORWARD_PROGRESS (DATA_ACKED | 0x10 | 0x20)

enum rule { RATE_HALVING, RFC6675, PRR_UB, PRR_CRB, PRR_SSRB, PRR_9937, PRR_3_2 };

struct controller {
	struct tcp_congestion_ops ops;
	const char *base_name;
	struct tcp_congestion_ops *base;
	enum rule rule;
};

/* Recovery state, stored at the end of the private area, after the state of the base controller. */
struct recovery {
	u64 entered;	/* arrival of the ACK that began the episode, if one did */
	u32 una;	/* snd_una at the last ACK */
	u32 delivered;	/* prr_delivered */
	u32 fs;		/* RecoverFS, segments */
	u32 segs_in;	/* segments received by the last ACK */
	u8 reducing;	/* in CWR or Recovery */
	u8 odd;		/* rate halving: the last ACK was the odd one */
};

static struct recovery *recovery(struct sock *sk)
{
	char *area = (char *)inet_csk(sk)->icsk_ca_priv;

	return (struct recovery *)(area + ICSK_CA_PRIV_SIZE) - 1;
}

static const struct controller *controller(struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct controller, ops);
}

/* Rate halving stopped at half of ssthresh with Reno, and at ssthresh with controllers without a lower
 * bound of their own. */
static u32 rate_halving(struct tcp_sock *tp, struct recovery *r, u32 in_flight, bool reno)
{
	u32 cwnd = tcp_snd_cwnd(tp);

	if (r->odd && cwnd > (reno ? tp->snd_ssthresh / 2 : tp->snd_ssthresh))
		cwnd--;
	r->odd = !r->odd;
	return min(cwnd, in_flight + 1);
}

/* Data outstanding when the episode began. RFC 9937 excludes data SACKed before the entering ACK. */
static u32 recover_fs(const struct tcp_sock *tp, enum rule rule)
{
	switch (rule) {
	case PRR_9937:
		return tp->packets_out - tp->sacked_out;
	case PRR_3_2:
		return tp->prior_cwnd;
	default:
		return tp->packets_out;
	}
}

#ifndef HAS_UPDATE_PACING_RATE
/* Copy of a function that the kernel does not export: pacing at twice cwnd per RTT while cwnd is below
 * half of ssthresh, at 1.2 times later. */
static void tcp_update_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct net *net = sock_net(sk);
	bool early = tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2;
	u64 percent = early ? READ_ONCE(net->ipv4.sysctl_tcp_pacing_ss_ratio) : READ_ONCE(net->ipv4.sysctl_tcp_pacing_ca_ratio);
	u64 rate = (u64)tp->mss_cache * max(tcp_snd_cwnd(tp), tp->packets_out) * ((USEC_PER_SEC / 100) << 3) * percent;

	if (tp->srtt_us)
		do_div(rate, tp->srtt_us);
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}
#endif

static u32 bounded(u32 room, u32 banked, u32 delivered, bool safe, enum rule rule)
{
	switch (rule) {
	case PRR_UB:
		return room;
	case PRR_CRB:
		return min(room, banked);
	case PRR_9937:
		return min(room, max(banked, delivered) + safe);
	default:
		return min(room, max(banked, delivered) + 1);
	}
}

static u32 prr(struct tcp_sock *tp, struct recovery *r, u32 in_flight, u32 delivered, bool safe, enum rule rule)
{
	bool entering = r->entered == tp->tcp_mstamp;
	u32 send;

	if (entering && rule == PRR_9937)
		r->fs += delivered;
	r->delivered += delivered;
	if (in_flight > tp->snd_ssthresh) {
		u32 due = DIV_ROUND_UP_ULL((u64)r->delivered * tp->snd_ssthresh, max(r->fs, 1U));

		send = due > tp->prr_out ? due - tp->prr_out : 0;
	} else {
		u32 banked = r->delivered > tp->prr_out ? r->delivered - tp->prr_out : 0;

		send = bounded(tp->snd_ssthresh - in_flight, banked, delivered, safe, rule);
	}
	if (!send && ((rule == PRR_9937 && !tp->prr_out) || (rule == PRR_3_2 && entering)))
		send = 1;
	return in_flight + send;
}

static void reduce(struct sock *sk, struct recovery *r, const struct rate_sample *rs, bool advanced)
{
	const struct controller *c = controller(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	enum rule rule = c->rule;
	u32 in_flight = tcp_packets_in_flight(tp);
	u32 delivered = max(rs->acked_sacked, 0);
	u32 cwnd;

	if (!delivered && (rule == PRR_9937 || (rule == RATE_HALVING && !advanced)))
		return;
	if (rule == RATE_HALVING)
		cwnd = rate_halving(tp, r, in_flight, !strcmp(c->base_name, "reno"));
	else if (rule == RFC6675)
		cwnd = max(tp->snd_ssthresh, tp->prr_out ? 0 : in_flight + 1);
	else
		cwnd = prr(tp, r, in_flight, delivered, advanced && rs->losses <= 0, rule);
	tcp_snd_cwnd_set(tp, max(cwnd, 1U));
}

/* As tcp_may_raise_cwnd of the kernel: cwnd grows on cumulatively acknowledged data and, once reordering has been seen,
 * on SACKed data. A DSACK does not count, although rs->acked_sacked includes it.
 */
static bool may_grow(const struct sock *sk, int flag)
{
	if (tcp_sk(sk)->reordering > READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reordering))
		return flag & FORWARD_PROGRESS;
	return flag & DATA_ACKED;
}

static void on_ack(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	const struct controller *c = controller(sk);
	struct recovery *r = recovery(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool advanced = tp->snd_una != r->una;

	r->una = tp->snd_una;
	r->segs_in = tp->segs_in;
	if (r->reducing) {
		reduce(sk, r, rs, advanced);
	} else if (may_grow(sk, flag)) {
		c->base->cong_avoid(sk, ack, max(rs->acked_sacked, 0));
		tp->snd_cwnd_stamp = tcp_jiffies32;
	}
	tcp_update_pacing_rate(sk);
}

#ifndef CONTROL_HAS_FLAG
/* Before Linux 6.10 a controller does not receive the ACK number or its flags. Both are derived from snd_una, except
 * that a DSACK counts as progress. */
static void on_bare_ack(struct sock *sk, const struct rate_sample *rs)
{
	u32 una = tcp_sk(sk)->snd_una;
	int flag = una != recovery(sk)->una ? DATA_ACKED : rs->acked_sacked ? FORWARD_PROGRESS & ~DATA_ACKED : 0;

	on_ack(sk, una, flag, rs);
}
#define on_ack on_bare_ack
#endif

/* The reordering timer enters recovery without a new ACK: one segment may be sent. */
static void on_timer(struct sock *sk, struct recovery *r)
{
	struct rate_sample one = { .acked_sacked = 1, .losses = 1 };

	if (controller(sk)->rule == PRR_9937 && r->entered == tcp_sk(sk)->tcp_mstamp)
		r->fs--;	/* no ACK began the episode, so none is counted */
	reduce(sk, r, &one, false);
}

/* Called before the state changes, when ssthresh, prior_cwnd and prr_out are those of the new episode. */
static void on_state(struct sock *sk, u8 state)
{
	const struct controller *c = controller(sk);
	struct recovery *r = recovery(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u8 before = inet_csk(sk)->icsk_ca_state;
	bool enters = state == TCP_CA_Recovery || state == TCP_CA_CWR;

	if (enters && !r->reducing) {
		r->delivered = 0;
		r->odd = 0;
		r->fs = recover_fs(tp, c->rule);
		r->entered = tp->tcp_mstamp;
	} else if (r->reducing && state <= TCP_CA_Disorder && (before == TCP_CA_CWR || tp->undo_marker)) {
		/* The episode ends without having been undone. */
		bool stays = c->rule == PRR_UB || c->rule == PRR_CRB || c->rule == PRR_SSRB;
		u32 cwnd = stays ? tcp_snd_cwnd(tp) : tp->snd_ssthresh;

		if (c->rule == RATE_HALVING)
			cwnd = min3(cwnd, tcp_snd_cwnd(tp), tcp_packets_in_flight(tp) + 3);
		if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
			tcp_snd_cwnd_set(tp, max(cwnd, 1U));
		tp->snd_cwnd_stamp = tcp_jiffies32;
		if (c->base->cwnd_event)
			c->base->cwnd_event(sk, CA_EVENT_COMPLETE_CWR);
	}
	r->reducing = enters;
	if (c->base->set_state)
		c->base->set_state(sk, state);
	if (state == TCP_CA_Recovery && before != TCP_CA_Recovery && tp->segs_in == r->segs_in)
		on_timer(sk, r);
}

static void on_start(struct sock *sk)
{
	struct recovery *r = recovery(sk);

	memset(r, 0, sizeof(*r));
	r->una = tcp_sk(sk)->snd_una;
	r->segs_in = tcp_sk(sk)->segs_in;
	if (controller(sk)->base->init)
		controller(sk)->base->init(sk);
	if (sk->sk_state == TCP_SYN_RECV)
		tcp_update_pacing_rate(sk);
}

static u32 on_loss(struct sock *sk)
{
	return controller(sk)->base->ssthresh(sk);
}

static u32 on_undo(struct sock *sk)
{
	return controller(sk)->base->undo_cwnd(sk);
}

/* The first segment after an idle time is about to be sent: cwnd restarts as the kernel does for
 * controllers without cong_control. */
static void restart(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	s32 idle = tcp_jiffies32 - tp->lsndtime;

	if (READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle) && !tp->packets_out &&
	    idle > (s32)inet_csk(sk)->icsk_rto)
		tcp_cwnd_restart(sk, idle);
}

static void on_event(struct sock *sk, enum tcp_ca_event event)
{
#ifndef HAS_TX_START
	if (event == CA_EVENT_TX_START)
		restart(sk);
#endif
	if (controller(sk)->base->cwnd_event)
		controller(sk)->base->cwnd_event(sk, event);
}

#ifdef HAS_TX_START
static void on_tx_start(struct sock *sk)
{
	restart(sk);
	if (controller(sk)->base->cwnd_event_tx_start)
		controller(sk)->base->cwnd_event_tx_start(sk);
}
#define TX_START .cwnd_event_tx_start = on_tx_start,
#else
#define TX_START
#endif

static void on_sample(struct sock *sk, const struct ack_sample *sample)
{
	if (controller(sk)->base->pkts_acked)
		controller(sk)->base->pkts_acked(sk, sample);
}

#define CONTROLLER(NAME, BASE, RULE) {					\
	.ops = {							\
		.name = NAME,						\
		.owner = THIS_MODULE,					\
		.init = on_start,					\
		.ssthresh = on_loss,					\
		.undo_cwnd = on_undo,					\
		.set_state = on_state,					\
		.cwnd_event = on_event,					\
		TX_START						\
		.pkts_acked = on_sample,				\
		.cong_control = on_ack,					\
	},								\
	.base_name = BASE,						\
	.rule = RULE,							\
}

static struct controller controllers[] = {
	CONTROLLER("reno_rh", "reno", RATE_HALVING),
	CONTROLLER("reno_rfc6675", "reno", RFC6675),
	CONTROLLER("reno_prr_ub", "reno", PRR_UB),
	CONTROLLER("reno_prr_crb", "reno", PRR_CRB),
	CONTROLLER("reno_prr_ssrb", "reno", PRR_SSRB),
	CONTROLLER("reno_prr_9937", "reno", PRR_9937),
	CONTROLLER("reno_prr_3_2", "reno", PRR_3_2),
	CONTROLLER("cubic_rh", "cubic", RATE_HALVING),
	CONTROLLER("cubic_rfc6675", "cubic", RFC6675),
	CONTROLLER("cubic_prr_ub", "cubic", PRR_UB),
	CONTROLLER("cubic_prr_crb", "cubic", PRR_CRB),
	CONTROLLER("cubic_prr_ssrb", "cubic", PRR_SSRB),
	CONTROLLER("cubic_prr_9937", "cubic", PRR_9937),
	CONTROLLER("cubic_prr_3_2", "cubic", PRR_3_2),
};

static int __init ackclock_recovery_register(void)
{
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(controllers); i++) {
		rcu_read_lock();
		controllers[i].base = tcp_ca_find(controllers[i].base_name);
		rcu_read_unlock();
		if (!controllers[i].base)
			return -ENOENT;
		err = tcp_register_congestion_control(&controllers[i].ops);
		if (err)
			return err;
	}
	return 0;
}

/* Registered after the base controllers, which use device_initcall. */
late_initcall(ackclock_recovery_register);

MODULE_DESCRIPTION("Reno and CUBIC under other recovery rules");
MODULE_LICENSE("Dual MIT/GPL");
