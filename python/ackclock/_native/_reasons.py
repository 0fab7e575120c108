"""Reasons why a Linux module cannot run in the simulator: it uses kernel features beyond a single connection."""

from __future__ import annotations

import re

__all__ = ["LACKS", "of"]

_REASONS = (
    (
        r"\b(?:sk_prot|tcp_prot|tcpv6_prot|struct proto|sockptr_t|copy_from_sockptr|\w*setsockopt)\b",
        "it puts itself between programs and TCP (a hook of setsockopt), and here no program sets options; allowed: the value as a parameter of the module (module_param)",
    ),
    (
        r"\b(?:cdev|cdev_\w+|alloc_chrdev_region|register_chrdev\w*|class_create|miscdevice|misc_register|file_operations|proc_create\w*|proc_ops|debugfs_\w+|sysfs_\w+|kobject\w*)\b|linux/(?:cdev|proc_fs|debugfs|miscdevice|kobject)\.h",
        "it talks to programs through a file of its own (a device, /proc or /sys); allowed: a parameter of the module (module_param), and printk",
    ),
    (
        r"\b(?:bpf_map\w*|bpf_prog\w*|BPF_PROG_RUN)\b",
        "it runs programs of BPF; allowed: the same in C in the module itself",
    ),
    (
        r"\b(?:hrtimer\w*|timer_list|timer_setup|setup_timer|mod_timer|del_timer\w*|add_timer|tasklet\w*|work_struct|INIT_(?:DELAYED_)?WORK|schedule_(?:delayed_)?work|queue_work|kthread\w*|HRTIMER_\w+)\b",
        "it acts at times of its own (a timer or a thread), and a controller of the simulator is called by its connection alone",
    ),
    (
        r"\b(?:nf_hook\w*|nf_register\w*|xt_register\w*|kprobe\w*|jprobe\w*|tracepoint_probe\w*)\b|linux/netfilter",
        "it changes packets, or the kernel, outside its connection (a hook of netfilter, a probe)",
    ),
    (
        r"\b(?:filp_open|kernel_read|vfs_read|netlink_kernel_create|genl_\w+|sock_create\w*|kernel_sendmsg)\b|\bnetlink/",
        "it reads files or speaks to other programs while it runs, so a run would not repeat",
    ),
    (
        r"\bskb_mstamp\b|\bskb_mstamp_us_delta\b",
        "it is of a kernel before 4.13, whose instants had a type of their own (struct skb_mstamp); allowed: the same controller as of 4.13 or newer",
    ),
    (
        r"\brx_opt\b|\brcv_tsval\b|\brcv_tsecr\b",
        "it reads the peer's timestamps (rx_opt), which a controller does not receive",
    ),
    (
        r"\b(?:sk_wmem_queued|sk_sndbuf|sk_write_space|sk_socket|sk_send_head|sk_write_queue|tcp_rtx_queue\w*|icsk_timeout|icsk_retransmit_timer|sk_family|inet_sk|sk_user_data)\b",
        "it reads the socket itself (its buffers, queues, timers or addresses), and a controller of the simulator has a connection without one",
    ),
)
"""Pattern in the compiler's output or in the file's text -> reason."""

LACKS = re.compile(
    r"has no member named|undeclared|implicit declaration|No such file|incomplete type|isn.t known|undefined type|unknown type|expected|undefined reference"
)


def of(errors: list[str], text: str) -> str:
    """Return the reason for compiler errors: the first table entry that matches an error, or else the first that
    matches the file's text; "" if none does.

    Parameters
    ----------
    errors
        Complete output of the compiler.
    text
        Text of the module.
    """
    if not any(LACKS.search(error) for error in errors):
        return ""
    for where in ("\n".join(errors), text):
        for pattern, reason in _REASONS:
            if re.search(pattern, where):
                return reason
    return ""
