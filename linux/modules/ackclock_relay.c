// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Network devices of hosts whose links are simulated by a program: it reads the packets that hosts send, and decides
 * when and where each of them arrives.
 *
 * A host's packet is stored with the time at which it was sent. The program need not read it at once, because its
 * decisions take effect only after the packet has crossed the links. It is woken that much later ("lookahead"), reads
 * all packets sent in the meantime, and writes the delivery time of each. Packets are then delivered at their
 * nanosecond without the program. Two system calls thus serve all packets sent within a link's delay.
 *
 * read():  struct sent, one for each packet, oldest first. Deliveries that are due are made first.
 * write(): struct verdict, one for each packet; a time that has passed means now.
 * poll():  readable when the lookahead of the oldest packet is over.
 * ioctl(): RELAY_LINE sets the rate of a device's line. RELAY_HOST makes a device in the caller's namespace; the two hosts of a pair have the numbers 2n and 2n + 1.
 *
 * A device without segmentation offload copies packets, as a program's TUN device would. One with it (SG, checksums and
 * TSO set with ethtool) hands them on as they are, as a veth does behind a router, so packets of several segments arrive
 * whole. With GRO on, such a device is polled, as a veth is, and the kernel merges what one poll finds. A device with a
 * line transmits one packet after another: while it is busy, packets wait in its queueing discipline.
 *
 * Length: both ends of a device, which sends and receives, and the program between them.
 *
 * The names of packets are kernel addresses, so a program that opens this device must be trusted. The device serves a
 * single program.
 */
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/uaccess.h>
#include <uapi/linux/sched/types.h>
#include <net/inet_ecn.h>
#include <net/ip_tunnels.h>

#include "ackclock_tree.h"

#ifndef HAS_HRTIMER_SETUP /* before Linux 6.13 */
#define hrtimer_setup(timer, function_, clock, mode) (hrtimer_init(timer, clock, mode), (void)((timer)->function = (function_)))
#endif

#define HOSTS 512
#define HEAD 101
#define OFFLOADS (NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_ALL_TSO)
#ifndef NETIF_F_GSO_ACCECN /* before Linux 6.18 */
#define NETIF_F_GSO_ACCECN 0
#endif
#define BATCH 512

struct sent {
	u64 t;			/* CLOCK_MONOTONIC, ns */
	u64 packet;
	u32 len;
	u16 host;
	u16 segments;
	u16 segment;		/* payload of a full one, if there are several */
	u8 after;		/* a delivery came earlier in this nanosecond */
	u8 head[HEAD];
};

struct verdict {
	u64 t;
	u64 packet;
	u32 order;		/* rank among deliveries of one nanosecond, smallest first */
	u32 what;
};

enum { DELIVER, MARK, DROP };

struct new_host {
	char name[IFNAMSIZ];
	u32 host;
};

struct lookahead {
	u64 ns;
	u32 host;
	u32 unused;
};

struct line {
	u64 rate;		/* bit/s */
	u32 host;
	u32 framing;		/* bytes charged for each segment in addition to its IP packet */
};

#define RELAY_HOST _IOWR('a', 1, struct new_host)
#define RELAY_LOOKAHEAD _IOW('a', 2, struct lookahead)
#define RELAY_LINE _IOW('a', 3, struct line)

struct host {
	u64 lookahead;
	u64 rate;
	u64 busy_until;
	u32 framing;
	u16 number;
	bool polled;		/* until the end of its polls no arrival causes one */
	struct net_device *dev;
	struct hrtimer line;
	struct sk_buff_head inbox;
	struct napi_struct napi;
};

struct note {
	u64 t;
	u32 order;
	u16 host;
	u8 after;
};

static struct net_device *devices[HOSTS];
static u32 devices_made;
static struct sk_buff_head sent_packets;
static struct rb_root_cached deliveries = RB_ROOT_CACHED;
static DEFINE_SPINLOCK(guard);
static DECLARE_WAIT_QUEUE_HEAD(program);
static struct hrtimer alarm;
static u64 alarm_at = U64_MAX;
static u64 last_delivery;
static struct task_struct *deliverer;
static union {
	struct sent sent[BATCH];
	struct verdict verdicts[BATCH];
} buffer;

static struct note *note(struct sk_buff *skb)
{
	return (struct note *)skb->cb;
}

/* Copy of a packet in newly allocated memory, laid out as a TUN device lays out packets that a program writes. */
static struct sk_buff *copied(struct sk_buff *skb)
{
	size_t linear = skb->len;
	struct sk_buff *copy;
	int error;

	if (NET_SKB_PAD + skb->len >= PAGE_SIZE)
		linear = min_t(size_t, SKB_MAX_HEAD(NET_SKB_PAD), skb->len);
	copy = alloc_skb_with_frags(NET_SKB_PAD + linear, skb->len - linear, PAGE_ALLOC_COSTLY_ORDER, &error, GFP_ATOMIC);
	if (!copy)
		return NULL;
	skb_reserve(copy, NET_SKB_PAD);
	skb_put(copy, linear);
	copy->data_len = skb->len - linear;
	copy->len += copy->data_len;
	for (u32 at = 0; at < skb->len; ) {
		u8 part[256];
		u32 n = min_t(u32, skb->len - at, sizeof(part));

		if (!skb_is_nonlinear(copy)) {
			skb_copy_bits(skb, 0, copy->data, skb->len);
			break;
		}
		skb_copy_bits(skb, at, part, n);
		skb_store_bits(copy, at, part, n);
		at += n;
	}
	return copy;
}

/* The packet itself, with headers of its own, free of its sender. */
static struct sk_buff *handed_on(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	skb_clear_delivery_time(skb);
	if (skb_cow(skb, 0)) {
		kfree_skb(skb);
		return NULL;
	}
	return skb;
}

static struct sk_buff *taken(struct sk_buff *skb, struct net_device *dev)
{
	struct sk_buff *copy;

	if (dev->features & NETIF_F_SG)
		return handed_on(skb);
	copy = copied(skb);
	consume_skb(skb);
	return copy;
}

/* Bytes that links charge for a packet: its IP packet, framing and headers for each of its segments. */
static u32 charge(struct sk_buff *skb, u32 framing)
{
	u32 more = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs - 1 : 0;

	return skb->len + framing + more * (skb_tcp_all_headers(skb) + framing);
}

/* Time at which the line has transmitted a packet; segments of one packet, cut in software, follow each other. */
static void transmit(struct host *host, u64 now, u32 bytes)
{
	u64 bits = bytes * 8ull * NSEC_PER_SEC;

	host->busy_until = max(now, host->busy_until) + div64_u64(bits + host->rate / 2, host->rate);
	if (!netdev_xmit_more()) {
		netif_stop_queue(host->dev);
		hrtimer_start(&host->line, ns_to_ktime(host->busy_until), HRTIMER_MODE_ABS_HARD);
	}
}

static enum hrtimer_restart relay_line(struct hrtimer *timer)
{
	netif_wake_queue(container_of(timer, struct host, line)->dev);
	return HRTIMER_NORESTART;
}

static netdev_tx_t relay_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct host *host = netdev_priv(dev);
	u64 now = ktime_get_ns();
	u64 deadline = now + host->lookahead;
	struct sk_buff *copy;
	bool first;

	skb_tx_timestamp(skb);
	if (host->rate)
		transmit(host, now, charge(skb, host->framing));
	copy = taken(skb, dev);
	if (!copy) {
		dev->stats.tx_dropped++;
		return NETDEV_TX_OK;
	}
	*note(copy) = (struct note){ .t = now, .host = host->number, .after = last_delivery == now };
	spin_lock_bh(&guard);
	__skb_queue_tail(&sent_packets, copy);
	first = deadline < alarm_at;
	if (first)
		alarm_at = deadline;
	spin_unlock_bh(&guard);
	if (first && deadline <= now)
		wake_up_interruptible(&program);
	else if (first)
		hrtimer_start(&alarm, ns_to_ktime(deadline), HRTIMER_MODE_ABS_HARD);
	return NETDEV_TX_OK;
}

static enum hrtimer_restart relay_alarm(struct hrtimer *timer)
{
	wake_up_interruptible(&program);
	return HRTIMER_NORESTART;
}

static bool merges(struct net_device *dev)
{
	return dev->features & NETIF_F_SG && dev->features & NETIF_F_GRO;
}

static struct net_device *target(struct sk_buff *skb)
{
	return devices[note(skb)->host ^ 1];
}

static void poll_soon(struct host *host)
{
	if (skb_queue_empty(&host->inbox) || host->polled || !napi_schedule_prep(&host->napi))
		return;
	host->polled = true;
	__napi_schedule(&host->napi);
}

/* Hand a packet to its host; returns whether it waits for a poll. */
static bool receive(struct sk_buff *skb)
{
	struct net_device *dev = target(skb);
	struct host *host = netdev_priv(dev);

	skb_mark_not_on_list(skb);
	skb->prev = NULL;
	skb->dev = dev;
	memset(skb->cb, 0, sizeof(skb->cb));
	skb->protocol = htons(skb->data[0] >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb_probe_transport_header(skb);
	skb_record_rx_queue(skb, 0);
	local_bh_disable();
	if (merges(dev))
		__skb_queue_tail(&host->inbox, skb);
	else
		netif_receive_skb(skb);
	local_bh_enable();
	return merges(dev);
}

/* Time of the next delivery. */
static u64 next_delivery(void)
{
	struct rb_node *first = rb_first_cached(&deliveries);

	return first ? note(rb_to_skb(first))->t : U64_MAX;
}

static void deliver_due(void)
{
	bool polls = false;

	for (;;) {
		u64 now = ktime_get_ns();
		struct sk_buff *skb = NULL;

		spin_lock_bh(&guard);
		if (next_delivery() <= now) {
			skb = rb_to_skb(rb_first_cached(&deliveries));
			rb_erase_cached(&skb->rbnode, &deliveries);
			last_delivery = now;
		}
		spin_unlock_bh(&guard);
		if (!skb)
			break;
		polls |= receive(skb);
	}
	if (!polls)
		return;
	local_bh_disable();
	for (u32 i = 0; i < devices_made; i++)
		poll_soon(netdev_priv(devices[i]));
	local_bh_enable();
}

/* Put what has arrived by now into the inbox: a poll takes all packets of its nanosecond. */
static void collect_due(struct host *host)
{
	u64 now = ktime_get_ns();
	struct rb_node *node, *next;

	spin_lock(&guard);
	for (node = rb_first_cached(&deliveries); node; node = next) {
		struct sk_buff *skb = rb_to_skb(node);

		next = rb_next(node);
		if (note(skb)->t > now)
			break;
		if (target(skb) != host->dev)
			continue;
		rb_erase_cached(node, &deliveries);
		receive(skb);
	}
	last_delivery = now;
	spin_unlock(&guard);
}

static int relay_napi(struct napi_struct *napi, int budget)
{
	struct host *host = container_of(napi, struct host, napi);
	struct sk_buff *skb;
	int done = 0;

	collect_due(host);
	while (done < budget && (skb = __skb_dequeue(&host->inbox))) {
		napi_gro_receive(napi, skb);
		done++;
	}
	if (done < budget && napi_complete_done(napi, done))
		host->polled = false;
	return done;
}

/* Delivery thread, at the lowest priority: a timer that expires in the nanosecond of a delivery acts
 * before it. */
static int deliver(void *unused)
{
	static const struct sched_param none;

	sched_setscheduler_nocheck(current, SCHED_IDLE, &none);
	for (;;) {
		u64 next;

		deliver_due();
		set_current_state(TASK_INTERRUPTIBLE);
		next = next_delivery();
		if (next == U64_MAX) {
			schedule();
		} else {
			ktime_t at = ns_to_ktime(next);

			schedule_hrtimeout_range(&at, 0, HRTIMER_MODE_ABS);
		}
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

static bool earlier(struct rb_node *a, const struct rb_node *b)
{
	struct note *x = note(rb_to_skb(a)), *y = note(rb_to_skb(b));

	return x->t != y->t ? x->t < y->t : x->order < y->order;
}

static ssize_t relay_read(struct file *file, char __user *to, size_t room, loff_t *at)
{
	size_t most = min_t(size_t, room / sizeof(struct sent), BATCH), n = 0;
	struct sk_buff *skb;

	deliver_due();
	spin_lock_bh(&guard);
	while (n < most && (skb = __skb_dequeue(&sent_packets))) {
		struct sent *s = &buffer.sent[n++];

		s->t = note(skb)->t;
		s->packet = (u64)skb;
		s->len = skb->len;
		s->host = note(skb)->host;
		s->segments = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
		s->segment = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : 0;
		s->after = note(skb)->after;
		memset(s->head, 0, HEAD);
		skb_copy_bits(skb, 0, s->head, min_t(u32, skb->len, HEAD));
	}
	if (skb_queue_empty(&sent_packets))
		alarm_at = U64_MAX;
	spin_unlock_bh(&guard);
	if (alarm_at == U64_MAX)
		hrtimer_cancel(&alarm);
	return copy_to_user(to, buffer.sent, n * sizeof(struct sent)) ? -EFAULT : n * sizeof(struct sent);
}

static ssize_t relay_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	size_t n = min_t(size_t, size / sizeof(struct verdict), BATCH);
	u64 before = next_delivery();

	if (copy_from_user(buffer.verdicts, from, n * sizeof(struct verdict)))
		return -EFAULT;
	for (size_t i = 0; i < n; i++) {
		struct verdict *v = &buffer.verdicts[i];
		struct sk_buff *skb = (struct sk_buff *)v->packet;

		if (v->what == DROP) {
			kfree_skb(skb);
			continue;
		}
		if (v->what == MARK)
			IP_ECN_set_ce((struct iphdr *)skb->data);
		note(skb)->t = v->t;
		note(skb)->order = v->order;
		spin_lock_bh(&guard);
		rb_add_cached(&skb->rbnode, &deliveries, earlier);
		spin_unlock_bh(&guard);
	}
	deliver_due();
	if (next_delivery() < before)
		wake_up_process(deliverer);
	return n * sizeof(struct verdict);
}

static __poll_t relay_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &program, table);
	return alarm_at <= ktime_get_ns() ? EPOLLIN | EPOLLRDNORM : 0;
}

static int relay_open(struct net_device *dev)
{
	napi_enable(&((struct host *)netdev_priv(dev))->napi);
	return 0;
}

static int relay_stop(struct net_device *dev)
{
	napi_disable(&((struct host *)netdev_priv(dev))->napi);
	return 0;
}

static const struct net_device_ops relay_netdev_ops = {
	.ndo_open = relay_open,
	.ndo_stop = relay_stop,
	.ndo_start_xmit = relay_xmit,
};

static void relay_setup(struct net_device *dev)
{
	dev->netdev_ops = &relay_netdev_ops;
	dev->header_ops = &ip_tunnel_header_ops;
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_POINTOPOINT | IFF_NOARP | IFF_MULTICAST;
	dev->priv_flags |= IFF_NO_QUEUE;
#ifdef HAS_LLTX
	dev->lltx = true;
#else
	dev->features |= NETIF_F_LLTX;
#endif
	dev->hw_features = OFFLOADS;
	dev->features = NETIF_F_GSO_ACCECN;
	dev->mtu = 1500;
	dev->min_mtu = 68;
	dev->max_mtu = 65535;
	dev->needs_free_netdev = true;
}

static long make_host(struct new_host __user *to)
{
	struct net_device *dev;
	struct new_host made;
	struct host *host;
	int error;

	if (copy_from_user(&made, to, sizeof(made)))
		return -EFAULT;
	made.name[IFNAMSIZ - 1] = 0;
	if (devices_made == HOSTS)
		return -ENOSPC;
	dev = alloc_netdev(sizeof(struct host), made.name, NET_NAME_USER, relay_setup);
	if (!dev)
		return -ENOMEM;
	dev_net_set(dev, current->nsproxy->net_ns);
	host = netdev_priv(dev);
	host->number = devices_made;
	host->dev = dev;
	skb_queue_head_init(&host->inbox);
	hrtimer_setup(&host->line, relay_line, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	netif_napi_add(dev, &host->napi, relay_napi);
	error = register_netdev(dev);
	if (error) {
		free_netdev(dev);
		return error;
	}
	made.host = devices_made;
	devices[devices_made++] = dev;
	return copy_to_user(to, &made, sizeof(made)) ? -EFAULT : 0;
}

static long relay_ioctl(struct file *file, unsigned int what, unsigned long arg)
{
	struct lookahead wanted;
	struct line line;
	struct host *host;

	switch (what) {
	case RELAY_HOST:
		return make_host((void __user *)arg);
	case RELAY_LOOKAHEAD:
		if (copy_from_user(&wanted, (void __user *)arg, sizeof(wanted)))
			return -EFAULT;
		if (wanted.host >= devices_made)
			return -EINVAL;
		((struct host *)netdev_priv(devices[wanted.host]))->lookahead = wanted.ns;
		return 0;
	case RELAY_LINE:
		if (copy_from_user(&line, (void __user *)arg, sizeof(line)))
			return -EFAULT;
		if (line.host >= devices_made)
			return -EINVAL;
		host = netdev_priv(devices[line.host]);
		host->rate = line.rate;
		host->framing = line.framing;
		return 0;
	}
	return -ENOTTY;
}

static const struct file_operations relay_files = {
	.read = relay_read,
	.write = relay_write,
	.poll = relay_poll,
	.unlocked_ioctl = relay_ioctl,
};

static struct miscdevice relay_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ackclock-relay",
	.fops = &relay_files,
};

static int __init relay_init(void)
{
	skb_queue_head_init(&sent_packets);
	hrtimer_setup(&alarm, relay_alarm, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	deliverer = kthread_run(deliver, NULL, "ackclock-relay");
	if (IS_ERR(deliverer))
		return PTR_ERR(deliverer);
	return misc_register(&relay_device);
}
late_initcall(relay_init);
