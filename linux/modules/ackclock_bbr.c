// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The kernel's own BBR with the simulator's random draws.
 *
 * BBR begins ProbeBW in one of seven phases, drawn by get_random_u32_below (bbr_reset_probe_bw_mode). The kernel has
 * one stream of random numbers for all its users, so a simulator cannot reproduce the draws. Here each connection has
 * its own stream, identical to the simulator's (crates/core/src/rng.rs; World::seed_of): xoshiro256++, seeded by the
 * run's seed, the flow and the number of the connection. The kernel's source is compiled a second time with this draw
 * and is otherwise unchanged.
 *
 * Version 3 (Google's patch) draws the wait until its next probe (bbr_pick_probe_wait) from the same stream.
 *
 * Name: bbr_drawn, for version 3 bbr3_drawn. The parameter `seed` is the run's seed. Connections of a port are numbered
 * in the order in which they are established, unless a number was assigned before by writing `port peer number` to the
 * parameter `number`.
 */

#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/inet.h>
#include <linux/inet_diag.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/win_minmax.h>
#include <net/tcp.h>

static unsigned long long seed;
module_param(seed, ullong, 0600);
MODULE_PARM_DESC(seed, "seed of the run");

/* Sender port of flow 0; those of the other flows follow. */
#define SENDER_PORT 10000

struct stream {
	u64 s[4];
};

static u64 mix(u64 z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static struct stream stream(u64 from, const char *name)
{
	struct stream made;
	u64 h = 0xcbf29ce484222325ULL;
	int i;

	for (; *name; name++)
		h = (h ^ (u8)*name) * 0x100000001b3ULL;
	h = mix(h ^ mix(from));
	for (i = 0; i < 4; i++)
		made.s[i] = mix(h + i * 0x9e3779b97f4a7c15ULL);
	return made;
}

static u64 next(struct stream *of)
{
	u64 *s = of->s, drawn = rol64(s[0] + s[3], 23) + s[0], t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rol64(s[3], 45);
	return drawn;
}

static u32 drawn_below(struct sock *sk, u32 n)
{
	struct stream *of = sk->sk_user_data;

	return of ? mul_u64_u64_shr(next(of), n, 64) : get_random_u32_below(n);
}

/* A connection that is about to be established, and the number assigned to it. */
struct numbered {
	struct list_head list;
	unsigned int port, peer, number;
};

static LIST_HEAD(expected);
static DEFINE_SPINLOCK(lock);

static int expect(const char *text, const struct kernel_param *kp)
{
	struct numbered *one = kmalloc(sizeof(*one), GFP_KERNEL);

	if (!one)
		return -ENOMEM;
	if (sscanf(text, "%u %u %u", &one->port, &one->peer, &one->number) != 3) {
		kfree(one);
		return -EINVAL;
	}
	spin_lock_bh(&lock);
	list_add_tail(&one->list, &expected);
	spin_unlock_bh(&lock);
	return 0;
}

static const struct kernel_param_ops expecting = { .set = expect };
module_param_cb(number, &expecting, NULL, 0200);
MODULE_PARM_DESC(number, "port, port of the peer and number of a connection to come");

static u32 number_of(const struct sock *sk)
{
	static u32 connections[1 << 16];
	struct numbered *one, *next;
	u16 port = inet_sk(sk)->inet_num, peer = ntohs(inet_sk(sk)->inet_dport);
	u32 number = connections[port]++;

	spin_lock_bh(&lock);
	list_for_each_entry_safe(one, next, &expected, list) {
		if (one->port != port || one->peer != peer)
			continue;
		number = one->number;
		list_del(&one->list);
		kfree(one);
		break;
	}
	spin_unlock_bh(&lock);
	return number;
}

/* In tcp_bbr.c every function that draws has the connection as `sk`. */
#define get_random_u32_below(n) drawn_below(sk, n)
#define prandom_u32_max(n) drawn_below(sk, n) /* its name before Linux 6.2 */
#undef module_init
#undef module_exit
#define module_init(f) static int __init register_bbr(void) { return f(); }
#define module_exit(f)
#include "../tcp_bbr.c"

#if defined(BBR_VERSION) && BBR_VERSION == 3
#define OURS "bbr3"
#else
#define OURS "bbr"
#endif

static void drawn_init(struct sock *sk)
{
	u32 flow = inet_sk(sk)->inet_num - SENDER_PORT, number = number_of(sk);
	struct stream *made = kmalloc(sizeof(*made), GFP_ATOMIC);
	char name[48];

	bbr_init(sk);
	if (!made)
		return;
	snprintf(name, sizeof(name), "controller.%u.%u", flow, number);
	*made = stream(seed, name);
	*made = stream(next(made), "bbr");
	sk->sk_user_data = made;
}

static void drawn_release(struct sock *sk)
{
	kfree(sk->sk_user_data);
	sk->sk_user_data = NULL;
}

static int __init ackclock_bbr_register(void)
{
	strscpy(tcp_bbr_cong_ops.name, OURS "_drawn", sizeof(tcp_bbr_cong_ops.name));
	tcp_bbr_cong_ops.init = drawn_init;
	tcp_bbr_cong_ops.release = drawn_release;
	return register_bbr();
}
late_initcall(ackclock_bbr_register);
