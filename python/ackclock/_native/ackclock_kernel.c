/* A Linux module (`struct tcp_congestion_ops`) as a controller of the simulator: the helpers that such modules call, and the hooks of
 * `ackclock_controller.h` mapped to its operations. This file is compiled into one library with the module.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A fault in the module (a signal) or a hook that does not return ends the call, not the process. Each call runs under a jump buffer, and a thread
 * of the library checks four times a second whether the same call is still running.
 *
 * Static variables of the module are shared by all connections. The library's writable memory, without our own variables, is compared with its state
 * after module_init when a connection is copied or closed. The memory is restored to that state when a connection opens while no other one exists.
 * With ACKCLOCK_APART each connection has its own copy of the variables, like connections on different hosts.
 *
 * Differs: fields of the connection that `ssthresh` and `undo_cwnd` set are not kept, except for the module's own state.
 *
 * Length: helpers, guard and hooks are one thing to compile.
 */
#define _GNU_SOURCE
#ifdef __linux__
#include <link.h>
#endif
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ackclock_controller.h"
#include "ackclock_kernel.h"

/* Start of the run on the module's clocks: the tick counter starts 300 s before its 32-bit wrap, and no time is 0. */
#define FIRST_NS 1000000000ull
#define FIRST_TICK ((unsigned long)(uint32_t)(-300 * HZ))
/* Largest processor time of one call, s. */
#define MOST_SECONDS 2

/* Section for our own variables, to separate them from those of the module. */
#ifdef __linux__
#define OURS __attribute__((__section__("ackclock_ours")))
#else
#define OURS
#endif

/* ---- The module ---- */

static struct tcp_congestion_ops *module OURS;
static struct ackclock_parameter *parameters OURS;

int __attribute__((__weak__)) ackclock_module_init(void);

void ackclock_parameter(struct ackclock_parameter *p)
{
	p->next = parameters;
	parameters = p;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	if (!module)
		module = ops;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops)
{
	if (module == ops)
		module = NULL;
}

/* ---- A connection ---- */

struct connection {
	struct tcp_sock tp; /* first, because a module's `sk` points here */
	struct ackclock_host host;
	struct sk_buff head;     /* the next segment to be sent */
	bool waits;              /* whether there is a segment to send */
	u32 counted, counted_ce; /* segments of the current ACK already added to `delivered` and `delivered_ce` */
	u32 counted_lost;        /* losses of the current ACK already added to `lost` */
	unsigned long given_rate;
	bool started;
	bool elsewhere; /* the module allocated memory, so that this structure is not its whole state */
	char *own[2];   /* the module's static variables while another connection's are in place */
	char said[160];
};

__thread struct ackclock_clock ackclock_clock;
static __thread struct connection *current;

static struct sock *sock(struct connection *c) { return &c->tp.inet_conn.icsk_sock; }

static void set_clock(uint64_t now)
{
	ackclock_clock.ns = now + FIRST_NS;
	ackclock_clock.ticks = FIRST_TICK + now / 1000000;
}

/* ---- Guard ---- */

struct guard {
	struct guard *next;
	jmp_buf back;
	volatile sig_atomic_t inside;
	volatile uint64_t calls; /* calls so far, which is also the number of the current call */
	uint64_t blamed;         /* number of the call to be aborted */
	volatile int signal;
	const char *volatile call; /* name of the current hook */
	uint64_t seen;
	double seen_cpu;
	pthread_t thread;
	clockid_t clock;
	void *stack;
	bool ready;
};

static const int FAULTS[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
#define N_FAULTS (sizeof(FAULTS) / sizeof(FAULTS[0]))
#define ENOUGH SIGVTALRM

static __thread struct guard guard;
static struct guard *guards OURS;
static pthread_mutex_t guards_lock OURS = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once OURS = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit OURS;
static struct sigaction others[N_FAULTS + 1] OURS;

static void pass_on(struct sigaction *other, int number, siginfo_t *about, void *context)
{
	if (other->sa_flags & SA_SIGINFO) {
		other->sa_sigaction(number, about, context);
	} else if (other->sa_handler == SIG_DFL) {
		if (number == ENOUGH)
			return; /* our own signal, after the call had returned */
		signal(number, SIG_DFL);
		raise(number);
	} else if (other->sa_handler != SIG_IGN) {
		other->sa_handler(number);
	}
}

static void on_signal(int number, siginfo_t *about, void *context)
{
	size_t i = 0;

	if (guard.inside && (number != ENOUGH || guard.blamed == guard.calls)) {
		guard.inside = 0;
		guard.signal = number;
		longjmp(guard.back, 1);
	}
	while (i < N_FAULTS && FAULTS[i] != number)
		i++;
	pass_on(&others[i], number, about, context);
}

static double seconds_of(clockid_t clock)
{
	struct timespec t = { 0, 0 };

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *watch(void *unused)
{
	struct timespec pause = { 0, 250000000 };
	sigset_t all;

	(void)unused;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&guards_lock);
		for (struct guard *g = guards; g; g = g->next) {
			uint64_t calls = g->calls;
			double cpu;

			if (!g->inside)
				continue;
			cpu = seconds_of(g->clock);
			if (calls != g->seen) {
				g->seen = calls;
				g->seen_cpu = cpu;
			} else if (cpu - g->seen_cpu > MOST_SECONDS) {
				g->blamed = calls;
				pthread_kill(g->thread, ENOUGH);
			}
		}
		pthread_mutex_unlock(&guards_lock);
	}
	return NULL;
}

static void thread_ends(void *ended)
{
	struct guard *gone = ended, **at = &guards;
	stack_t none = { .ss_flags = SS_DISABLE };

	pthread_mutex_lock(&guards_lock);
	while (*at && *at != gone)
		at = &(*at)->next;
	if (*at)
		*at = gone->next;
	pthread_mutex_unlock(&guards_lock);
	if (gone->stack) {
		sigaltstack(&none, NULL);
		free(gone->stack);
	}
}

static void forked(void) { once = (pthread_once_t)PTHREAD_ONCE_INIT; }

static void begin_watch(void)
{
	static bool before OURS;
	struct sigaction ours;
	pthread_t thread;
	pthread_attr_t detached;

	if (!before) {
		memset(&ours, 0, sizeof(ours));
		ours.sa_sigaction = on_signal;
		ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
		for (size_t i = 0; i < N_FAULTS; i++)
			sigaction(FAULTS[i], &ours, &others[i]);
		sigaction(ENOUGH, &ours, &others[N_FAULTS]);
		pthread_key_create(&at_exit, thread_ends);
		pthread_atfork(NULL, NULL, forked);
		before = true;
	}
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_create(&thread, &detached, watch, NULL);
	pthread_attr_destroy(&detached);
}

#define STACK 65536

static void get_ready(void)
{
	stack_t there, ours = { .ss_size = STACK };

	pthread_once(&once, begin_watch);
	if (guard.ready)
		return;
	guard.ready = true;
	if (sigaltstack(NULL, &there) == 0 && there.ss_flags & SS_DISABLE) {
		ours.ss_sp = guard.stack = malloc(STACK);
		if (guard.stack)
			sigaltstack(&ours, NULL);
	}
	guard.thread = pthread_self();
	pthread_getcpuclockid(guard.thread, &guard.clock);
	pthread_mutex_lock(&guards_lock);
	guard.next = guards;
	guards = &guard;
	pthread_mutex_unlock(&guards_lock);
	pthread_setspecific(at_exit, &guard);
}

static void tell(char *into, size_t room)
{
	const char *what = "a fault";

	switch (guard.signal) {
	case SIGSEGV: what = "it reads or writes where no memory is, or needs too much stack (SIGSEGV)"; break;
	case SIGBUS: what = "it reads or writes where no memory is (SIGBUS)"; break;
	case SIGFPE: what = "it divides by zero (SIGFPE)"; break;
	case SIGILL: case SIGTRAP: what = "BUG, or a place that must not be reached (SIGILL)"; break;
	case SIGABRT: what = "it gave up (SIGABRT)"; break;
	case ENOUGH: what = "no end after 2 s of processor time"; break;
	}
	snprintf(into, room, "%s: %s", guard.call, what);
}

static int failed(struct connection *c)
{
	tell(c->said, sizeof(c->said));
	return 1;
}

static void put_in_place(struct connection *c);

/* Call the module. After a fault the enclosing function returns an error. */
#define GUARDED(c, name, call_) \
	do { \
		put_in_place(c); \
		current = (c); \
		guard.call = name; \
		if (_setjmp(guard.back)) \
			return failed(c); \
		guard.calls++; \
		guard.inside = 1; \
		call_; \
		guard.inside = 0; \
	} while (0)

/* ---- Static variables of the module ---- */

static u32 connections OURS;
static bool wrote OURS; /* the module has written to a static variable */

#ifdef __linux__
extern char __start_ackclock_ours[] __attribute__((__visibility__("hidden")));
extern char __stop_ackclock_ours[] __attribute__((__visibility__("hidden")));

/* The library's writable memory, below and above our own variables, and its contents after module_init. */
static struct { char *from, *to, *bytes; } outside[2] OURS;

static int find(struct dl_phdr_info *library, size_t size, void *unused)
{
	char *from = NULL, *to = NULL, *fixed = NULL;

	(void)size;
	(void)unused;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		char *begin = (char *)library->dlpi_addr + part->p_vaddr, *end = begin + part->p_memsz;

		if (part->p_type == PT_GNU_RELRO)
			fixed = end;
		if (part->p_type == PT_LOAD && part->p_flags & PF_W && begin <= __start_ackclock_ours && __stop_ackclock_ours <= end) {
			from = begin;
			to = end;
		}
	}
	if (!from)
		return 0;
	outside[0].from = fixed > from && fixed <= __start_ackclock_ours ? fixed : from;
	outside[0].to = __start_ackclock_ours;
	outside[1].from = __stop_ackclock_ours;
	outside[1].to = to;
	return 1;
}

/* Save the module's static variables as the initial state of every run. */
static void keep_outside(void)
{
	if (!dl_iterate_phdr(find, NULL))
		return;
	for (int i = 0; i < 2; i++) {
		size_t size = (size_t)(outside[i].to - outside[i].from);

		outside[i].bytes = malloc(size);
		if (outside[i].bytes)
			memcpy(outside[i].bytes, outside[i].from, size);
	}
}

static bool outside_changed(void)
{
	for (int i = 0; i < 2; i++)
		if (!outside[i].bytes || memcmp(outside[i].bytes, outside[i].from, (size_t)(outside[i].to - outside[i].from)))
			return true;
	return false;
}

static void restore_outside(void)
{
	for (int i = 0; i < 2; i++)
		if (outside[i].bytes)
			memcpy(outside[i].from, outside[i].bytes, (size_t)(outside[i].to - outside[i].from));
}
#else
static void keep_outside(void) {}
static bool outside_changed(void) { return true; } /* unknown on this platform */
static void restore_outside(void) {}
#endif

#if defined(ACKCLOCK_APART) && defined(__linux__)
/* The connection whose variables are currently in place. */
static struct connection *placed OURS;

static void exchange(struct connection *c, bool out)
{
	for (int i = 0; i < 2; i++)
		if (c->own[i])
			memcpy(out ? c->own[i] : outside[i].from, out ? outside[i].from : c->own[i], (size_t)(outside[i].to - outside[i].from));
}

static void put_in_place(struct connection *c)
{
	if (placed == c || !(c->own[0] || c->own[1]))
		return;
	if (placed)
		exchange(placed, true);
	exchange(placed = c, false);
}

/* Give the connection a copy of the variables of `from`; NULL: of their state after module_init. */
static void own_variables(struct connection *c, const struct connection *from)
{
	for (int i = 0; i < 2; i++) {
		const char *bytes = from ? from->own[i] : outside[i].bytes;
		size_t size = (size_t)(outside[i].to - outside[i].from);

		c->own[i] = bytes ? malloc(size) : NULL;
		if (c->own[i])
			memcpy(c->own[i], bytes, size);
	}
}

static void forget_variables(struct connection *c)
{
	if (placed == c)
		placed = NULL;
	for (int i = 0; i < 2; i++)
		free(c->own[i]);
}
#else
static void put_in_place(struct connection *c) { (void)c; }
static void own_variables(struct connection *c, const struct connection *from) { (void)c; (void)from; }
static void forget_variables(struct connection *c) { (void)c; }
#endif

/* ---- State visible to the module ---- */

static void give(struct connection *c, const struct ackclock_window *w)
{
	struct tcp_sock *tp = &c->tp;
	unsigned long rate = w->pacing_rate;

	tp->snd_cwnd = w->cwnd;
	tp->snd_ssthresh = w->ssthresh;
	tp->snd_cwnd_cnt = w->cwnd_cnt;
	tp->snd_cwnd_clamp = w->cwnd_clamp;
	tp->prior_cwnd = w->prior_cwnd;
	if (rate == ULONG_MAX && !module->cong_control && tp->srtt_us) {
		/* the kernel's default pacing rate: twice the window per RTT in early slow start, 1.2 times later */
		u64 ratio = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;

		rate = (u64)tp->mss_cache * tp->snd_cwnd * 8 * (ratio * (USEC_PER_SEC / 100)) / tp->srtt_us;
	}
	sock(c)->sk_pacing_rate = c->given_rate = rate;
}

static void take(struct connection *c, struct ackclock_window *w)
{
	w->cwnd = c->tp.snd_cwnd;
	w->ssthresh = c->tp.snd_ssthresh;
	w->cwnd_cnt = c->tp.snd_cwnd_cnt;
	w->cwnd_clamp = c->tp.snd_cwnd_clamp;
	if (sock(c)->sk_pacing_rate != c->given_rate)
		w->pacing_rate = sock(c)->sk_pacing_rate ? sock(c)->sk_pacing_rate : ACKCLOCK_UNPACED; /* 0: unpaced, as in Linux */
}

/* Set the counters of a Linux connection from the simulator's: each transmission was delivered, is considered lost, or is in flight. */
static void count(struct connection *c, u64 snd_nxt, u32 in_flight)
{
	struct tcp_sock *tp = &c->tp;
	u32 mss = max(tp->mss_cache, 1u), out, sent, first;

	tp->packets_out = out = DIV_ROUND_UP(tp->snd_nxt - tp->snd_una, mss);
	/* Only lost_out - retrans_out is known: lost segments that were retransmitted count as in flight. */
	tp->lost_out = out > tp->sacked_out + in_flight ? out - tp->sacked_out - in_flight : 0;
	tp->retrans_out = tp->sacked_out + in_flight > out ? tp->sacked_out + in_flight - out : 0;
	tp->max_packets_out = max(tp->max_packets_out, out);
	sent = tp->delivered - 1 + tp->lost + in_flight; /* delivered includes the SYN */
	first = (u32)DIV_ROUND_UP_ULL(snd_nxt - 1, mss);
	if (before(tp->data_segs_out, max(sent, first)))
		tp->data_segs_out = max(sent, first);
	tp->segs_out = tp->data_segs_out + 1;
	tp->total_retrans = tp->data_segs_out - first;
	tp->bytes_sent = snd_nxt - 1 + (u64)tp->total_retrans * mss;
	tp->bytes_retrans = (u64)tp->total_retrans * mss;
	tp->write_seq = tp->snd_nxt + (c->waits ? mss : 0);
	tp->snd_wnd = 1u << 30;
}

static void hear(struct connection *c, const struct ackclock_ack *ack)
{
	struct tcp_sock *tp = &c->tp;
	u32 min_rtt = ack->min_rtt == ACKCLOCK_NONE ? ~0u : (u32)(ack->min_rtt / 1000);

	set_clock(ack->now);
	tp->tcp_mstamp = ackclock_clock.ns / 1000;
	tp->tcp_clock_cache = ackclock_clock.ns;
	tp->tcp_wstamp_ns = ackclock_clock.ns + ack->departs_in;
	tp->srtt_us = (u32)(ack->srtt / 1000) << 3;
	tp->rtt_min.s[0].v = min_rtt;
	tp->snd_una = (u32)ack->snd_una;
	tp->snd_nxt = (u32)ack->snd_nxt;
	tp->bytes_acked = ack->snd_una;
	tp->mss_cache = ack->smss;
	tp->sacked_out = ack->sacked;
	tp->is_cwnd_limited = !!(ack->window_held);
	tp->ackclock_cwnd_limited = !!(ack->cwnd_limited);
	tp->ackclock_in_flight = ack->in_flight;
	tp->inet_conn.icsk_ca_state = (u8)ack->ca_state;
	sock(c)->sk_pacing_status = ack->paced ? SK_PACING_FQ : SK_PACING_NONE;
	if (ack->delivered > c->counted)
		tp->delivered_mstamp = tp->tcp_mstamp;
	tp->delivered += ack->delivered - c->counted;
	tp->delivered_ce += ack->delivered_ce - c->counted_ce;
	c->counted = ack->delivered;
	c->counted_ce = ack->delivered_ce;
	if (ack->newly_lost > c->counted_lost)
		tp->lost += ack->newly_lost - c->counted_lost;
	c->counted_lost = ack->newly_lost;
	if (ack->rate.is_given) {
		tp->delivered = (u32)ack->rate.total_delivered;
		tp->lost = (u32)ack->rate.total_lost;
		c->waits = !ack->rate.is_app_limited;
	}
	count(c, ack->snd_nxt, ack->in_flight);
}

/* ---- Hooks ---- */

static void *cc_open(const struct ackclock_host *host)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	get_ready();
	if (__atomic_fetch_add(&connections, 1, __ATOMIC_RELAXED) == 0 && outside_changed())
		restore_outside();
	own_variables(c, NULL);
	c->host = *host;
	c->tp.inet_conn.icsk_ca_ops = module;
	c->tp.delivered = 1; /* the SYN */
	c->tp.mss_cache = 1448;
	c->tp.snd_una = c->tp.snd_nxt = 1;
	c->tp.snd_cwnd = TCP_INIT_CWND;
	c->tp.snd_ssthresh = TCP_INFINITE_SSTHRESH;
	c->tp.snd_cwnd_clamp = ~0u;
	c->tp.rtt_min.s[0].v = ~0u;
	sock(c)->sk_pacing_rate = ULONG_MAX;
	sock(c)->sk_max_pacing_rate = ULONG_MAX;
	sock(c)->sk_pacing_shift = 10;
	sock(c)->sk_gso_max_size = GSO_MAX_SIZE;
	sock(c)->sk_gso_max_segs = (u16)GSO_MAX_SEGS;
	c->tp.reordering = 3;
	c->tp.advmss = 1460;
	c->tp.tcp_header_len = 32; /* with timestamps */
	c->waits = true;
	sock(c)->sk_state = TCP_ESTABLISHED;
	return c;
}

static int release(struct connection *c)
{
	GUARDED(c, "release", module->release(sock(c)));
	return 0;
}

static void cc_close(void *cc)
{
	struct connection *c = cc;

	get_ready();
	if (c->started && module->release)
		release(c);
	if (outside_changed())
		wrote = true;
	__atomic_fetch_sub(&connections, 1, __ATOMIC_RELAXED);
	forget_variables(c);
	free(c);
}

/* Copy the connection's structure. It is the whole state unless the module allocated memory or writes to static variables. */
static void *cc_copy(void *cc, const struct ackclock_host *host)
{
	struct connection *c = cc, *copy = NULL;
	const char *why = "found no memory";

	put_in_place(c);
	if (outside_changed())
		wrote = true;
	if (c->elsewhere)
		why = "found a module that keeps state in memory that it allocated";
	else if (wrote)
		why = "found a module that writes to variables outside of its connections";
	else
		copy = malloc(sizeof(*c));
	if (!copy) {
		snprintf(c->said, sizeof(c->said), "%s", why);
		return NULL;
	}
	__atomic_fetch_add(&connections, 1, __ATOMIC_RELAXED);
	*copy = *c;
	own_variables(copy, c);
	copy->host = *host;
	return copy;
}

static const char *cc_said(void *cc) { return ((struct connection *)cc)->said; }

#ifdef ACKCLOCK_BARE_ACKED
#define ACKED(c, sample) module->pkts_acked(sock(c), (sample).pkts_acked, (sample).rtt_us)
#else
#define ACKED(c, sample) module->pkts_acked(sock(c), &(sample))
#endif
#ifdef ACKCLOCK_BARE_CONTROL
#define CONTROL(c, una, rs) module->cong_control(sock(c), rs)
#else
#define CONTROL(c, una, rs) module->cong_control(sock(c), una, 0, rs)
#endif

static int cc_on_syn_acked(void *cc, uint64_t rtt)
{
	struct connection *c = cc;
	const struct ack_sample sample = { .pkts_acked = 1, .rtt_us = (s32)(rtt / 1000) };

	get_ready();
	GUARDED(c, "pkts_acked", ACKED(c, sample));
	return 0;
}

static int cc_on_start(void *cc, struct ackclock_window *w, uint64_t now, uint64_t srtt, uint32_t smss)
{
	struct connection *c = cc;

	get_ready();
	set_clock(now);
	c->tp.tcp_mstamp = ackclock_clock.ns / 1000;
	c->tp.tcp_clock_cache = c->tp.tcp_wstamp_ns = ackclock_clock.ns;
	c->tp.delivered_mstamp = c->tp.tcp_mstamp;
	c->tp.srtt_us = (u32)(srtt / 1000) << 3;
	c->tp.mss_cache = smss;
	if (srtt)
		c->tp.rtt_min.s[0].v = (u32)(srtt / 1000);
	c->tp.lsndtime = tcp_jiffies32;
	c->started = true;
	give(c, w);
	c->tp.inet_conn.icsk_ca_initialized = 1;
	if (module->init)
		GUARDED(c, "init", module->init(sock(c)));
	take(c, w);
	return 0;
}

static int cc_on_sample(void *cc, struct ackclock_window *w, const struct ackclock_ack *ack)
{
	struct connection *c = cc;
	const struct ack_sample sample = {
		.pkts_acked = ack->covered,
		.rtt_us = ack->rtt == ACKCLOCK_NONE ? -1 : (s32)(ack->rtt / 1000),
		.in_flight = ack->since_sent * ack->smss, /* bytes */
	};
	u32 flags = CA_ACK_WIN_UPDATE;

	if (ack->slow_path || ack->ece)
		flags = CA_ACK_SLOWPATH | (ack->ece ? CA_ACK_ECE : 0);
	give(c, w); /* before the ACK's own values: the pacing rate is computed from those of the previous ACK */
	c->counted = c->counted_ce = c->counted_lost = 0;
	hear(c, ack);
	if (!module->pkts_acked && !module->in_ack_event)
		return 0;
	if (module->pkts_acked)
		GUARDED(c, "pkts_acked", ACKED(c, sample));
	if (module->in_ack_event)
		GUARDED(c, "in_ack_event", module->in_ack_event(sock(c), flags));
	take(c, w);
	return 0;
}

static int cc_on_ack(void *cc, struct ackclock_window *w, const struct ackclock_ack *ack)
{
	struct connection *c = cc;

	give(c, w);
	hear(c, ack);
	c->tp.ackclock_asked_cwr = 0;
	GUARDED(c, "cong_avoid", module->cong_avoid(sock(c), (u32)ack->snd_una, ack->acked));
	take(c, w);
	return 0;
}

static int cc_reduces(void *cc, int *asked)
{
	struct connection *c = cc;

	*asked = c->tp.ackclock_asked_cwr;
	c->tp.ackclock_asked_cwr = 0;
	return 0;
}

static int cc_ssthresh(void *cc, const struct ackclock_window *w, uint32_t in_flight, uint32_t *target)
{
	struct connection *c = cc;

	(void)in_flight;
	set_clock(c->host.now(c->host.run)); /* a timeout expires long after the last ACK */
	give(c, w);
	GUARDED(c, "ssthresh", *target = module->ssthresh(sock(c)));
	return 0;
}

static int event(struct connection *c, struct ackclock_window *w, enum tcp_ca_event what)
{
	give(c, w);
	GUARDED(c, "cwnd_event", module->cwnd_event(sock(c), what));
	take(c, w);
	return 0;
}

static int cc_on_rto(void *cc, struct ackclock_window *w, uint64_t now)
{
	set_clock(now);
	return event(cc, w, CA_EVENT_LOSS);
}

static int cc_on_state(void *cc, struct ackclock_window *w, uint32_t state, uint64_t now)
{
	struct connection *c = cc;

	set_clock(now);
	give(c, w);
	GUARDED(c, "set_state", module->set_state(sock(c), (u8)state));
	take(c, w);
	c->tp.inet_conn.icsk_ca_state = (u8)state;
	return 0;
}

static int cc_on_recovered(void *cc, struct ackclock_window *w, uint64_t now)
{
	set_clock(now);
	return event(cc, w, CA_EVENT_COMPLETE_CWR);
}

static int cc_undo_cwnd(void *cc, const struct ackclock_window *w, uint32_t *cwnd)
{
	struct connection *c = cc;

	give(c, w);
	GUARDED(c, "undo_cwnd", *cwnd = module->undo_cwnd(sock(c)));
	return 0;
}

static int cc_on_tx_start(void *cc, struct ackclock_window *w, uint64_t now, uint64_t idle, uint64_t snd_nxt)
{
	struct connection *c = cc;

	set_clock(now);
	c->tp.tcp_mstamp = ackclock_clock.ns / 1000;
	c->tp.tcp_clock_cache = ackclock_clock.ns;
	c->tp.snd_nxt = (u32)snd_nxt;
	c->tp.lsndtime = (u32)(FIRST_TICK + (now > idle ? now - idle : 0) / 1000000);
	c->tp.app_limited = 1; /* set always: the simulator calls controllers that measure rates only if the sender was application-limited */
	if (!module->cwnd_event_tx_start)
		return event(c, w, CA_EVENT_TX_START);
	give(c, w);
	GUARDED(c, "cwnd_event_tx_start", module->cwnd_event_tx_start(sock(c)));
	take(c, w);
	return 0;
}

/* Report a lost segment, with the fields that kernels with BBRv3 store in it at transmission. */
static int cc_on_lost(void *cc, struct ackclock_window *w, uint64_t now, uint64_t delivered, uint32_t lost, uint32_t tx_in_flight,
		      uint32_t is_app_limited)
{
	struct connection *c = cc;
	struct sk_buff segment = { .len = c->tp.mss_cache, .ackclock_cb = { .sacked = TCPCB_LOST, .tcp_gso_segs = 1 } };
	struct tcp_skb_cb *cb = &segment.ackclock_cb;

	set_clock(now);
	c->tp.tcp_mstamp = ackclock_clock.ns / 1000;
	c->tp.tcp_clock_cache = ackclock_clock.ns;
	c->tp.delivered = (u32)delivered;
	c->tp.lost++;
	c->counted_lost++;
	cb->tx.in_flight = tx_in_flight;
	cb->tx.lost = c->tp.lost - lost;
	cb->tx.is_app_limited = is_app_limited != 0;
	cb->tx.delivered_mstamp = 1; /* any nonzero time: modules check only that it is set */
	give(c, w);
	GUARDED(c, "skb_marked_lost", module->skb_marked_lost(sock(c), &segment));
	take(c, w);
	return 0;
}

static int cc_on_repaired(void *cc, struct ackclock_window *w, uint64_t now, uint64_t delivered, uint32_t is_app_limited)
{
	struct connection *c = cc;

	set_clock(now);
	c->tp.delivered = (u32)delivered;
	c->tp.tlp_orig_data_app_limited = is_app_limited != 0;
	return event(c, w, CA_EVENT_TLP_RECOVERY);
}

static int cc_on_restart(void *cc, struct ackclock_window *w, uint64_t snd_nxt)
{
	((struct connection *)cc)->tp.snd_nxt = (u32)snd_nxt;
	return event(cc, w, CA_EVENT_CWND_RESTART);
}

static int cc_on_control(void *cc, struct ackclock_window *w, const struct ackclock_ack *ack)
{
	struct connection *c = cc;
	const struct ackclock_rate *rate = &ack->rate;
	struct rate_sample rs = {
		.delivered = -1,
		.interval_us = -1,
		.rtt_us = ack->rtt == ACKCLOCK_NONE ? -1 : (long)(ack->rtt / 1000),
		.losses = (int)ack->newly_lost,
		.acked_sacked = ack->delivered,
		.prior_in_flight = ack->prior_in_flight,
	};

	give(c, w);
	hear(c, ack);
	if (ack->rate.is_given) {
		rs.prior_mstamp = (rate->prior_time + FIRST_NS) / 1000;
		rs.prior_delivered = (u32)rate->prior_delivered;
		rs.delivered = (s32)rate->delivered;
		rs.delivered_ce = (s32)rate->delivered_ce;
		rs.interval_us = rate->interval ? (long)(rate->interval / 1000) : -1;
		rs.snd_interval_us = (u32)(rate->send_elapsed / 1000);
		rs.rcv_interval_us = (u32)(rate->ack_elapsed / 1000);
		rs.is_app_limited = rate->is_app_limited;
		rs.is_retrans = rate->is_retrans;
		rs.is_ack_delayed = rate->is_ack_delayed;
		rs.is_acking_tlp_retrans_seq = rate->is_probe_ack;
		rs.tx_in_flight = rate->tx_in_flight;
		rs.lost = rate->lost;
		rs.prior_lost = (u32)rate->total_lost - rate->lost;
	}
	rs.is_ece = ack->ece != 0;
	c->tp.app_limited = 0;
	GUARDED(c, "cong_control", CONTROL(c, (u32)ack->snd_una, &rs));
	take(c, w);
	return 0;
}

static int cc_on_totals(void *cc, uint64_t delivered, uint64_t lost, uint64_t delivered_time)
{
	struct connection *c = cc;

	c->tp.delivered = (u32)delivered;
	c->tp.lost = (u32)lost;
	c->tp.delivered_mstamp = (delivered_time + FIRST_NS) / 1000;
	return 0;
}

static int cc_holds_back(void *cc, int *held)
{
	*held = ((struct connection *)cc)->tp.app_limited != 0;
	return 0;
}

/* ---- Start ---- */

static struct ackclock_controller controller OURS = {
	.abi = ACKCLOCK_CONTROLLER_ABI,
	.open = cc_open,
	.close = cc_close,
	.said = cc_said,
	.copy = cc_copy,
	.on_start = cc_on_start,
	.on_sample = cc_on_sample,
	.ssthresh = cc_ssthresh,
	.undo_cwnd = cc_undo_cwnd,
	.on_totals = cc_on_totals,
};

static int set_number(const struct ackclock_parameter *p, const char *value)
{
	char *end;
	long long number = strtoll(value, &end, 0);

	if (!strcmp(value, "true") || !strcmp(value, "false"))
		number = value[0] == 't';
	else if (end == value || *end)
		return -1;
	switch (p->kind) {
	case 9: *(bool *)p->value = number != 0; return 0;
	case 1: case -1: *(u8 *)p->value = (u8)number; return 0;
	case 2: case -2: *(u16 *)p->value = (u16)number; return 0;
	case 4: case -4: *(u32 *)p->value = (u32)number; return 0;
	case 8: case -8: *(u64 *)p->value = (u64)number; return 0;
	}
	return -1;
}

static int set_parameter(const struct ackclock_parameter *p, const char *value)
{
	char *kept;

	if (p->kind != 10)
		return set_number(p, value);
	kept = strdup(value); /* never freed, because the module may read the text at any time */
	if (kept)
		*(char **)p->value = kept;
	return kept ? 0 : -1;
}

static int set_parameters(const char *options, char *why, size_t room)
{
	char line[256];

	for (; *options; options += strcspn(options, "\n"), options += *options == '\n') {
		size_t length = strcspn(options, "\n");
		const struct ackclock_parameter *p = parameters;
		char *value;

		if (length >= sizeof(line))
			length = sizeof(line) - 1;
		memcpy(line, options, length);
		line[length] = 0;
		value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = 0;
		while (p && strcmp(p->name, line))
			p = p->next;
		if (p && !set_parameter(p, value))
			continue;
		length = (size_t)snprintf(why, room, "found %s = %s; allowed: whole numbers, true or false, or a text, for", line, value);
		for (p = parameters; p && length < room; p = p->next)
			length += (size_t)snprintf(why + length, room - length, " %s%s", p->name, p->next ? "," : "");
		if (!parameters)
			snprintf(why, room, "found %s = %s; allowed: none, for the file has no module_param", line, value);
		return -1;
	}
	return 0;
}

/* Set the number of windows that the send buffer has room for. Computing it may require a connection. */
static int buffer(struct connection *c)
{
	GUARDED(c, "sndbuf_expand", controller.buffer_windows = module->sndbuf_expand(sock(c)));
	return 0;
}

#ifdef ACKCLOCK_BARE_ACKED
static u32 twice_ssthresh(struct sock *sk) { return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->snd_ssthresh << 1); }
#endif

static int begin(struct connection *c)
{
	int answer = 0;

	GUARDED(c, "module_init", answer = ackclock_module_init());
	if (answer)
		snprintf(c->said, sizeof(c->said), "module_init: found that it returns %d; allowed: 0", answer);
	return answer;
}

__attribute__((__visibility__("default")))
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room)
{
	static struct connection nobody OURS;

	if (set_parameters(options, why, room))
		return NULL;
	get_ready();
	if (ackclock_module_init && begin(&nobody)) {
		snprintf(why, room, "%s", nobody.said);
		return NULL;
	}
	if (!module) {
		snprintf(why, room, "found nothing that module_init registers (tcp_register_congestion_control); allowed: one controller");
		return NULL;
	}
#ifdef ACKCLOCK_BARE_ACKED
	if (!module->undo_cwnd) /* optional before Linux 4.10, where the default was twice ssthresh */
		module->undo_cwnd = twice_ssthresh;
#endif
	if (!module->ssthresh || !module->undo_cwnd || !(module->cong_avoid || module->cong_control)) {
		snprintf(why, room, "found %s without %s; allowed: ssthresh, undo_cwnd, and cong_avoid or cong_control", module->name,
			 !module->ssthresh ? "ssthresh" : !module->undo_cwnd ? "undo_cwnd" : "cong_avoid");
		return NULL;
	}
	controller.name = module->name;
#ifdef ACKCLOCK_NEEDS
	controller.needs = ACKCLOCK_NEEDS; /* needs derived from the file's text */
#endif
	if (module->flags & TCP_CONG_NEEDS_ECN)
		controller.needs |= ACKCLOCK_NEEDS_EXACT_ECN;
	if (module->sndbuf_expand && buffer(&nobody)) {
		snprintf(why, room, "%s", nobody.said);
		return NULL;
	}
	if (module->pkts_acked)
		controller.on_syn_acked = cc_on_syn_acked;
	if (module->cong_control) {
		controller.needs |= ACKCLOCK_NEEDS_CONTROL | ACKCLOCK_NEEDS_RATE | ACKCLOCK_NEEDS_OWN_START;
		controller.on_control = cc_on_control;
		controller.holds_back = cc_holds_back;
	} else {
		controller.on_ack = cc_on_ack;
		controller.reduces = cc_reduces;
	}
	if (module->cwnd_event) {
		controller.on_rto = cc_on_rto;
		controller.on_recovered = cc_on_recovered;
		controller.on_restart = cc_on_restart;
	}
	if (module->skb_marked_lost) {
		/* a module for kernels with Google's BBRv3 changes, which do more than call the module for each loss */
		controller.needs |= ACKCLOCK_NEEDS_RATE | ACKCLOCK_NEEDS_LOSSES | ACKCLOCK_NEEDS_WATCHES_APPLICATION;
		controller.on_lost = cc_on_lost;
		if (module->cwnd_event)
			controller.on_repaired = cc_on_repaired;
	}
	if (module->cwnd_event || module->cwnd_event_tx_start)
		controller.on_tx_start = cc_on_tx_start;
	if (module->set_state)
		controller.on_state = cc_on_state;
	keep_outside();
	return &controller;
}

/* ---- Messages of the module ---- */

/* Lines printed in this thread since `ackclock_listen`, with timestamps in the format of the kernel's log; empty without a listener. */
#define MOST_SAID (64u << 20)
static __thread struct { char *text; size_t length, room; bool listens, midline; } log_;

__attribute__((__visibility__("default"))) void ackclock_listen(int whether)
{
	free(log_.text);
	memset(&log_, 0, sizeof(log_));
	log_.listens = whether != 0;
}

__attribute__((__visibility__("default"))) const char *ackclock_heard(size_t *length)
{
	*length = log_.length;
	return log_.text;
}

static void keep(const char *text, size_t length)
{
	if (log_.length + length > log_.room) {
		size_t room = max((size_t)65536, 2 * (log_.room + length));
		char *more = log_.room > MOST_SAID ? NULL : realloc(log_.text, room);

		if (!more)
			return;
		log_.text = more;
		log_.room = room;
	}
	memcpy(log_.text + log_.length, text, length);
	log_.length += length;
}

/* Append a line to the log. `%p` has the C library's meaning; the kernel's extensions of it are not supported. */
void ackclock_say(const char *form, ...)
{
	char line[1024], *at = line, *end;
	va_list given;
	int length;

	if (!log_.listens)
		return;
	va_start(given, form);
	length = vsnprintf(line, sizeof(line), form, given);
	va_end(given);
	if (length < 0)
		return;
	if (length >= (int)sizeof(line))
		length = sizeof(line) - 1;
	for (; *at; at = end) {
		char stamp[48];

		end = at + strcspn(at, "\n");
		if (!log_.midline) {
			u64 us = ackclock_clock.ns < FIRST_NS ? 0 : (ackclock_clock.ns - FIRST_NS) / 1000;
			int n = snprintf(stamp, sizeof(stamp), "[%5llu.%06llu] ", us / 1000000, us % 1000000);

			keep(stamp, (size_t)n);
		}
		log_.midline = true;
		keep(at, (size_t)(end - at));
		if (*end == '\n')
			end++;
	}
	/* each message is a line, with or without a newline at its end */
	keep("\n", 1);
	log_.midline = false;
}

/* ---- Helpers for modules ---- */

struct net ackclock_net = {
	.ipv4 = {
		.sysctl_tcp_ecn = 2, .sysctl_tcp_reordering = 3, .sysctl_tcp_max_reordering = 300, .sysctl_tcp_min_tso_segs = 2,
		.sysctl_tcp_tso_win_divisor = 3, .sysctl_tcp_tso_rtt_log = 9, .sysctl_tcp_pacing_ss_ratio = 200, .sysctl_tcp_pacing_ca_ratio = 120,
		.sysctl_tcp_slow_start_after_idle = 1, .sysctl_tcp_sack = 1, .sysctl_tcp_timestamps = 1, .sysctl_tcp_window_scaling = 1,
		.sysctl_tcp_early_retrans = 3, .sysctl_tcp_recovery = 1, .sysctl_tcp_frto = 2, .sysctl_tcp_fastopen = 1,
		.sysctl_tcp_moderate_rcvbuf = 1, .sysctl_tcp_limit_output_bytes = 4194304, .sysctl_tcp_notsent_lowat = -1,
		.sysctl_tcp_min_rtt_wlen = 300, .sysctl_tcp_wmem = { 4096, 16384, 4194304 }, .sysctl_tcp_rmem = { 4096, 131072, 33554432 },
	},
};

struct sk_buff *tcp_send_head(const struct sock *sk)
{
	struct connection *c = (struct connection *)sk;
	struct tcp_skb_cb *cb = TCP_SKB_CB(&c->head);

	if (!c->waits)
		return NULL;
	c->head.len = c->tp.mss_cache;
	cb->seq = c->tp.snd_nxt;
	cb->end_seq = cb->seq + c->head.len;
	cb->tcp_flags = TCPHDR_ACK;
	cb->tcp_gso_segs = 1;
	return &c->head;
}

/* Not exported by Linux. Forks of BBR define their own, or use that of a patched kernel. */
bool tcp_snd_wnd_test(const struct tcp_sock *tp, const struct sk_buff *skb, unsigned int cur_mss);
__attribute__((__weak__)) bool tcp_snd_wnd_test(const struct tcp_sock *tp, const struct sk_buff *skb, unsigned int cur_mss)
{
	(void)cur_mss;
	return !after(TCP_SKB_CB(skb)->end_seq, tcp_wnd_end(tp));
}

#define TAG 0x61636b636c6f636bull

void *ackclock_allocate(size_t n, size_t size)
{
	u64 *memory = n && size > (SIZE_MAX - 16) / n ? NULL : calloc(1, 16 + n * size);

	if (!memory)
		return NULL;
	memory[0] = TAG;
	if (current)
		current->elsewhere = true;
	return memory + 2;
}

void kfree(const void *memory)
{
	u64 *whole = (u64 *)memory - 2;

	if (!memory)
		return;
	if (whole[0] != TAG)
		BUG();
	whole[0] = 0;
	free(whole);
}

u64 get_random_u64(void) { return current->host.random(current->host.run); }
u32 get_random_u32(void) { return (u32)(get_random_u64() >> 32); }
u32 get_random_u32_below(u32 ceiling) { return (u32)(((unsigned __int128)get_random_u64() * ceiling) >> 64); }

void get_random_bytes(void *into, size_t length)
{
	for (u8 *byte = into; length--; byte++)
		*byte = get_random_u8();
}

unsigned long int_sqrt(unsigned long x)
{
	unsigned long root = 0;

	for (unsigned long bit = 1UL << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

/* RFC 5681: one segment per segment acknowledged, up to ssthresh. Returns the rest of `acked`. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);
	u32 left = acked - (cwnd - tp->snd_cwnd);

	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
	return left;
}

/* Linear growth: one segment per `w` segments acknowledged. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		u32 more = tp->snd_cwnd_cnt / w;

		tp->snd_cwnd_cnt -= more * w;
		tp->snd_cwnd += more;
	}
	tp->snd_cwnd = min(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

u32 tcp_reno_ssthresh(struct sock *sk) { return max(tcp_sk(sk)->snd_cwnd >> 1, 2u); }
u32 tcp_reno_undo_cwnd(struct sock *sk) { return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd); }

struct tcp_congestion_ops tcp_reno = {
	.name = "reno",
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

/* Windowed minimum or maximum with the best three samples (Kathleen Nichols' filter), as in `crates/cc/src/controller/minmax.rs`. */
static inline bool better(u32 a, u32 b, bool maximum) { return maximum ? a >= b : a <= b; }

static u32 running(struct minmax *m, u32 window, u32 t, u32 v, bool maximum)
{
	const struct minmax_sample sample = { t, v };
	struct minmax_sample *s = m->s;
	u32 age;

	if (better(v, s[0].v, maximum) || t - s[2].t > window)
		return minmax_reset(m, t, v);
	if (better(v, s[1].v, maximum))
		s[1] = s[2] = sample;
	else if (better(v, s[2].v, maximum))
		s[2] = sample;
	age = t - s[0].t;
	if (age > window) {
		s[0] = s[1];
		s[1] = s[2];
		s[2] = sample;
		if (t - s[0].t > window) {
			s[0] = s[1];
			s[1] = s[2];
			s[2] = sample;
		}
	} else if (s[1].t == s[0].t && age > window / 4) {
		s[1] = s[2] = sample;
	} else if (s[2].t == s[1].t && age > window / 2) {
		s[2] = sample;
	}
	return s[0].v;
}

u32 minmax_reset(struct minmax *m, u32 t, u32 meas)
{
	m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){ t, meas };
	return meas;
}

u32 minmax_running_max(struct minmax *m, u32 win, u32 t, u32 meas) { return running(m, win, t, meas, true); }
u32 minmax_running_min(struct minmax *m, u32 win, u32 t, u32 meas) { return running(m, win, t, meas, false); }
