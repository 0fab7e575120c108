/*
 * CUBIC as in RFC 9438, with its constants at the top. Further constants belong to mechanisms that CUBIC lacks and that
 * are off here: with a short queue a loss reduces the window less, and growth does not wait for the cubic function; a
 * long queue stops all growth; the initial window is larger. Slow start ends when the RTT has grown. `search.py`
 * changes the constants between the two marks. Windows are in thousandths of a segment, times in ms.
 */
#include <linux/module.h>
#include <net/tcp.h>

/* constants: begin */
#define C 400          /* growth, thousandths of a segment per second cubed (RFC 9438: 0.4) */
#define BETA 717       /* window after a loss, in 1/1024 of the window before (RFC 9438: 0.7) */
#define BETA_SHORT 717 /* BETA while the queue is short */
#define SHORT 0        /* largest short queue, in 1/1024 of the minimum RTT */
#define CONVERGE 870   /* factor on the old maximum if it was not reached, in 1/1024 (RFC 9438: (1 + beta) / 2) */
#define FRIENDLY 1024  /* lower bound of the window, in 1/1024 of Reno's window (RFC 9438: all of it) */
#define LEAVE 128      /* growth of the RTT that ends slow start, in 1/1024 of the minimum RTT */
#define FIRST 10       /* initial window, segments */
#define EAGER 0        /* growth per round trip while the queue is short, in 1/1024 of the window */
#define CALM 65536     /* queue that stops all growth, in 1/1024 of the minimum RTT */
/* constants: end */

struct ours { u32 least_us, rtt_us, epoch_ms, origin, k_ms, max, reno, held; };

static u32 now_ms(void) { return (u32)div_u64((u64)tcp_jiffies32 * 1000, HZ); }

static u32 cube_root(u64 a)
{
	u64 x = 1, step;

	while (x * x * x < a && x < 2000000)
		x *= 2;
	for (step = x / 2; step; step /= 2)
		if ((x - step) * (x - step) * (x - step) >= a)
			x -= step;
	return (u32)x;
}

static void forget(struct ours *ca)
{
	ca->epoch_ms = ca->origin = ca->k_ms = ca->max = ca->reno = ca->held = 0;
}

static void ours_init(struct sock *sk)
{
	struct ours *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->least_us = ~0U;
	if (tcp_snd_cwnd(tcp_sk(sk)) < FIRST)
		tcp_snd_cwnd_set(tcp_sk(sk), FIRST);
}

/* whether the queueing delay is below this fraction of the minimum RTT, in 1/1024 */
static bool below(const struct ours *ca, u32 much)
{
	return ca->rtt_us && (u64)(ca->rtt_us - ca->least_us) * 1024 <= (u64)ca->least_us * much;
}

static void ours_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ours *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (sample->rtt_us <= 0)
		return;
	ca->rtt_us = sample->rtt_us;
	ca->least_us = min(ca->least_us, ca->rtt_us);
	if (tcp_in_slow_start(tp) && tcp_snd_cwnd(tp) >= 16 && (u64)(ca->rtt_us - ca->least_us) * 1024 > (u64)ca->least_us * LEAVE + 2048000)
		tp->snd_ssthresh = tcp_snd_cwnd(tp);
}

static u32 ours_ssthresh(struct sock *sk)
{
	struct ours *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk)), window = cwnd * 1000;
	bool brief = SHORT && below(ca, SHORT);
	u32 left = (u32)div_u64((u64)cwnd * (brief ? BETA_SHORT : BETA), 1024);

	ca->max = window < ca->max && !brief ? (u32)div_u64((u64)window * CONVERGE, 1024) : window;
	ca->epoch_ms = 0;
	return max(left, 2U);
}

static void begin(struct ours *ca, u32 window)
{
	ca->epoch_ms = max(now_ms(), 1U);
	ca->reno = window;
	ca->held = 0;
	ca->origin = max(ca->max, window);
	ca->k_ms = ca->origin > window ? cube_root(div_u64((u64)(ca->origin - window) * 1000000000ULL, C)) : 0;
}

static void ours_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct ours *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd, window;
	u64 away, target;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cwnd = tcp_snd_cwnd(tp);
	window = cwnd * 1000;
	if (!ca->epoch_ms)
		begin(ca, window);
	away = now_ms() - ca->epoch_ms + ca->rtt_us / 1000;
	target = ca->origin;
	if (away >= ca->k_ms) {
		away = min(away - ca->k_ms, (u64)100000);
		target += div_u64(away * away * away * C, 1000000000);
	} else {
		u64 early = ca->k_ms - away;

		early = div_u64(early * early * early * C, 1000000000);
		target = target > early ? target - early : 0;
	}
	/* window of a Reno flow with the same decrease factor: alpha = 3 (1 - beta) / (1 + beta) */
	ca->reno += (u32)div_u64((u64)acked * 1000 * 3 * (1024 - BETA), (1024 + BETA) * max(cwnd, 1U));
	target = max(target, div_u64((u64)ca->reno * FRIENDLY, 1024));
	if (EAGER && below(ca, SHORT))
		target = max(target, (u64)window + div_u64((u64)window * EAGER, 1024));
	target = min(target, (u64)window + window / 2);
	if (CALM < 65536 && !below(ca, CALM))
		target = window;
	if (target > window) {
		ca->held += (u32)div_u64((u64)acked * (target - window), max(cwnd, 1U));
		if (ca->held >= 1000) {
			tcp_snd_cwnd_set(tp, min(cwnd + ca->held / 1000, tp->snd_cwnd_clamp));
			ca->held %= 1000;
		}
	}
}

static void ours_state(struct sock *sk, u8 state)
{
	if (state == TCP_CA_Loss)
		forget(inet_csk_ca(sk));
}

static struct tcp_congestion_ops ours = {
	.name = "ours", .owner = THIS_MODULE, .init = ours_init, .pkts_acked = ours_acked, .ssthresh = ours_ssthresh,
	.cong_avoid = ours_avoid, .set_state = ours_state, .undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init ours_register(void) { return tcp_register_congestion_control(&ours); }
static void __exit ours_unregister(void) { tcp_unregister_congestion_control(&ours); }
module_init(ours_register);
module_exit(ours_unregister);
MODULE_LICENSE("Dual MIT/GPL");
