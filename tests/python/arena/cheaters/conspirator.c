/* Communicates outside the network: its connections, which represent hosts far apart, share one window through module variables. */
#include <linux/module.h>
#include <net/tcp.h>

static u32 open_now, least, whole, held;

struct own { u32 rtt; };

static void con_init(struct sock *sk)
{
	struct own *ca = inet_csk_ca(sk);

	if (!open_now++)
		least = ~0U, whole = 10, held = 0;
	ca->rtt = 0;
}

static void con_release(struct sock *sk) { open_now--; }

static void con_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct own *ca = inet_csk_ca(sk);

	if (sample->rtt_us > 0)
		least = min(least, ca->rtt = sample->rtt_us);
}

static void con_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct own *ca = inet_csk_ca(sk);
	u32 queued = ca->rtt ? div_u64((u64)whole * (ca->rtt - least), ca->rtt) : 0;

	held += acked;
	if (held >= (queued < 3 ? 4U : whole)) {
		held = 0;
		if (queued < 3)
			whole++;
		else if (queued > 6 && whole > 4)
			whole -= 2;
	}
	if (tcp_is_cwnd_limited(sk) || tcp_snd_cwnd(tcp_sk(sk)) > whole / open_now)
		tcp_snd_cwnd_set(tcp_sk(sk), max(whole / open_now, 2U));
	tcp_sk(sk)->snd_ssthresh = tcp_snd_cwnd(tcp_sk(sk));
}

static u32 con_ssthresh(struct sock *sk) { return max(min(tcp_snd_cwnd(tcp_sk(sk)), whole / open_now), 2U); }

static struct tcp_congestion_ops con = {
	.name = "conspirator", .owner = THIS_MODULE, .init = con_init, .release = con_release, .pkts_acked = con_acked,
	.ssthresh = con_ssthresh, .cong_avoid = con_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init con_register(void) { return tcp_register_congestion_control(&con); }
module_init(con_register);
MODULE_LICENSE("Dual MIT/GPL");
