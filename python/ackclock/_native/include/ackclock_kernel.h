/* Interface for congestion controllers written as Linux modules (`struct tcp_congestion_ops`): the declarations that they need to compile and run in
 * the simulator.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Written from the interface: names of structures, fields, constants and functions, and their meaning. Only fields that the simulator's connection
 * can fill are present; a module that uses another one does not compile. A tick is 1 ms. The 32-bit tick counter starts 300 s before its wrap, as
 * after a boot.
 *
 * Length: one header replaces all that such a module includes.
 */
#ifndef ACKCLOCK_KERNEL_H
#define ACKCLOCK_KERNEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types. */
typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16, __be16, __le16;
typedef uint32_t u32, __u32, __be32, __le32;
typedef unsigned long long u64, __u64;
typedef int8_t s8, __s8;
typedef int16_t s16, __s16;
typedef int32_t s32, __s32;
typedef long long s64, __s64;
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef s64 ktime_t;
typedef unsigned int gfp_t;
#ifndef _SYS_TYPES_H
typedef long ssize_t;
#endif
typedef struct { int counter; } atomic_t;
typedef struct { int unused; } spinlock_t;

/* Kernel version whose TCP the simulator follows; modules for several kernels test it. */
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#define LINUX_VERSION_CODE KERNEL_VERSION(7, 3, 4)
#define LINUX_VERSION_MAJOR 7
#define UTS_RELEASE "7.3.4"
#define RHEL_RELEASE_VERSION(a, b) (((a) << 8) + (b))

/* Attributes without effect here. */
#define __init
#define __exit
#define __user
#define __rcu
#define __percpu
#define __read_mostly
#define __ro_after_init
#define __initdata
#define __net_init
#define __bpf_kfunc __attribute__((__used__))
#define __bpf_kfunc_start_defs()
#define __bpf_kfunc_end_defs()
#define __maybe_unused __attribute__((__unused__))
#define __must_check
#define __pure __attribute__((__pure__))
#define __packed __attribute__((__packed__))
#define __aligned(x) __attribute__((__aligned__(x)))
#define __cold
#define __hot
#define noinline __attribute__((__noinline__))
#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif
#define fallthrough __attribute__((__fallthrough__))
#define notrace
#define asmlinkage
#define ____cacheline_aligned_in_smp
#define ____cacheline_aligned

/* Small helpers. */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" ::: "memory")
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define data_race(x) (x)
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define smp_load_acquire(p) READ_ONCE(*(p))
#define smp_store_release(p, v) WRITE_ONCE(*(p), v)
#define xchg(p, v) __sync_lock_test_and_set(p, v)
#define cmpxchg(p, old, new) __sync_val_compare_and_swap(p, old, new)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define GENMASK(h, l) ((~0UL >> (63 - (h))) & (~0UL << (l)))
#define BITS_PER_LONG 64
#define BITS_PER_BYTE 8
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
#define FIELD_SIZEOF(type, member) sizeof_field(type, member)
#define ACCESS_ONCE(x) READ_ONCE(x)
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define BUILD_BUG_ON_MSG(wrong, said) _Static_assert(!(wrong), said)
#define BUILD_BUG_ON(wrong) \
	_Static_assert(!(wrong), "BUILD_BUG_ON(" #wrong "), where a connection has ICSK_CA_PRIV_SIZE bytes")
#define static_assert(...) _Static_assert(__VA_ARGS__, "static_assert")
#define __ACK_PICK(a, b, op) ({ __typeof__(a) __a = (a); __typeof__(b) __b = (b); __a op __b ? __a : __b; })
#define min(a, b) __ACK_PICK(a, b, <)
#define max(a, b) __ACK_PICK(a, b, >)
#define min_t(type, a, b) __ACK_PICK((type)(a), (type)(b), <)
#define max_t(type, a, b) __ACK_PICK((type)(a), (type)(b), >)
#define umin(a, b) min_t(u64, a, b)
#define umax(a, b) max_t(u64, a, b)
#define min3(a, b, c) min((__typeof__(a))min(a, b), c)
#define max3(a, b, c) max((__typeof__(a))max(a, b), c)
#define clamp(v, low, high) min((__typeof__(v))max(v, low), high)
#define clamp_t(type, v, low, high) min_t(type, max_t(type, v, low), high)
#define clamp_val(v, low, high) clamp_t(__typeof__(v), v, low, high)
#define min_not_zero(a, b) ({ __typeof__(a) __x = (a); __typeof__(b) __y = (b); __x == 0 ? __y : __y == 0 ? __x : min(__x, __y); })
#define swap(a, b) do { __typeof__(a) __t = (a); (a) = (b); (b) = __t; } while (0)
#define abs(x) ({ \
	__typeof__(_Generic((x), unsigned int: 0, unsigned long: 0L, unsigned long long: 0LL, default: (x))) __v = (x); \
	__v < 0 ? -__v : __v; })
#define abs_diff(a, b) ({ __typeof__(a) __m = (a); __typeof__(b) __n = (b); __m > __n ? __m - __n : __n - __m; })
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d) DIV_ROUND_UP((u64)(n), (u64)(d))
#define DIV_ROUND_CLOSEST(n, d) (((n) + (d) / 2) / (d))
#define ALIGN(x, a) (((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define round_up(x, y) ALIGN(x, y)
#define round_down(x, y) ((x) & ~((__typeof__(x))(y) - 1))
#define roundup(x, y) ((((x) + ((y) - 1)) / (y)) * (y))
#define rounddown(x, y) ((x) - (x) % (y))
#define U32_C(x) x##U
#define U64_C(x) x##ULL
#define U8_MAX ((u8)~0U)
#define U16_MAX ((u16)~0U)
#define U32_MAX ((u32)~0U)
#define U64_MAX ((u64)~0ULL)
#define S8_MAX ((s8)(U8_MAX >> 1))
#define S16_MAX ((s16)(U16_MAX >> 1))
#define S32_MAX ((s32)(U32_MAX >> 1))
#define S32_MIN ((s32)(-S32_MAX - 1))
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN ((s64)(-S64_MAX - 1))
#ifndef INT_MAX
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (~0U)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-__LONG_MAX__ - 1)
#define ULONG_MAX (~0UL)
#define USHRT_MAX 0xffff
#define SHRT_MAX 0x7fff
#define UCHAR_MAX 0xff
#endif

/* Arithmetic. */
static inline u64 div_u64(u64 n, u32 d) { return n / d; }
static inline s64 div_s64(s64 n, s32 d) { return n / d; }
static inline u64 div64_u64(u64 n, u64 d) { return n / d; }
static inline s64 div64_s64(s64 n, s64 d) { return n / d; }
static inline u64 div_u64_rem(u64 n, u32 d, u32 *rest) { *rest = (u32)(n % d); return n / d; }
static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rest) { *rest = n % d; return n / d; }
static inline u64 mul_u32_u32(u32 a, u32 b) { return (u64)a * b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 b, unsigned int shift) { return (u64)(((unsigned __int128)a * b) >> shift); }
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift) { return (u64)(((unsigned __int128)a * b) >> shift); }
static inline u64 mul_u64_u32_div(u64 a, u32 b, u32 d) { return (u64)((unsigned __int128)a * b / d); }
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 d) { return (u64)((unsigned __int128)a * b / d); }
#define div64_ul(n, d) div64_u64(n, d)
#define div64_long(n, d) div64_s64(n, d)
#define do_div(n, d) ({ u32 __d = (d); u32 __rest = (u32)((n) % __d); (n) = (n) / __d; __rest; })
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int fls_long(unsigned long x) { return fls64(x); }
static inline unsigned long __fls(unsigned long x) { return 63 - __builtin_clzl(x); }
static inline unsigned long __ffs(unsigned long x) { return __builtin_ctzl(x); }
#define ilog2(x) (fls64(x) - 1)
#define is_power_of_2(x) ((x) != 0 && ((x) & ((x) - 1)) == 0)
#define roundup_pow_of_two(x) (1UL << fls64((u64)(x) - 1))
#define rounddown_pow_of_two(x) (1UL << (fls64(x) - 1))
#define order_base_2(x) ((x) > 1 ? fls64((u64)(x) - 1) : 0)
#define hweight8(x) __builtin_popcount((u8)(x))
#define hweight16(x) __builtin_popcount((u16)(x))
#define hweight32(x) __builtin_popcount(x)
#define hweight64(x) __builtin_popcountll(x)
unsigned long int_sqrt(unsigned long x);
static inline u32 int_sqrt64(u64 x) { return (u32)int_sqrt(x); }

/* Time. */
#define HZ 1000
#define NSEC_PER_SEC 1000000000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define MSEC_PER_SEC 1000L
#define USEC_PER_JIFFY (USEC_PER_SEC / HZ)
#define MAX_JIFFY_OFFSET ((LONG_MAX >> 1) - 1)
struct ackclock_clock { u64 ns; unsigned long ticks; };
extern __thread struct ackclock_clock ackclock_clock;
#define jiffies (*(volatile unsigned long *)&ackclock_clock.ticks)
#define jiffies_64 ((u64)jiffies)
#define get_jiffies_64() ((u64)jiffies)
#define tcp_jiffies32 ((u32)jiffies)
#define time_after(a, b) ((long)((unsigned long)(b) - (unsigned long)(a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((unsigned long)(a) - (unsigned long)(b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(b, a) time_after32(a, b)
#define time_after64(a, b) ((s64)((u64)(b) - (u64)(a)) < 0)
#define time_before64(a, b) time_after64(b, a)
#define time_after_eq64(a, b) ((s64)((u64)(a) - (u64)(b)) >= 0)
#define time_before_eq64(a, b) time_after_eq64(b, a)
#define time_in_range(a, b, c) (time_after_eq(a, b) && time_before_eq(a, c))
#define time_is_before_jiffies(a) time_after(jiffies, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)
static inline unsigned long msecs_to_jiffies(unsigned int ms) { return ms; }
static inline unsigned long usecs_to_jiffies(unsigned int us) { return (us + 999UL) / 1000; }
static inline unsigned int jiffies_to_msecs(unsigned long ticks) { return (unsigned int)ticks; }
static inline unsigned int jiffies_to_usecs(unsigned long ticks) { return (unsigned int)(ticks * 1000); }
static inline u64 jiffies64_to_nsecs(u64 ticks) { return ticks * 1000000; }
static inline u64 nsecs_to_jiffies(u64 ns) { return ns / 1000000; }
static inline u64 ktime_get_ns(void) { return ackclock_clock.ns; }
static inline ktime_t ktime_get(void) { return (ktime_t)ackclock_clock.ns; }
static inline s64 ktime_to_us(ktime_t t) { return t / 1000; }
static inline s64 ktime_to_ms(ktime_t t) { return t / 1000000; }
static inline s64 ktime_to_ns(ktime_t t) { return t; }
static inline s64 ktime_us_delta(ktime_t a, ktime_t b) { return (a - b) / 1000; }
#define ktime_add(a, b) ((ktime_t)(a) + (ktime_t)(b))
#define ktime_sub(a, b) ((ktime_t)(a) - (ktime_t)(b))
#define ktime_add_ns(t, ns) ((ktime_t)(t) + (s64)(ns))
#define ktime_add_us(t, us) ((ktime_t)(t) + (s64)(us) * 1000)
#define ktime_add_ms(t, ms) ((ktime_t)(t) + (s64)(ms) * 1000000)
#define ktime_sub_us(t, us) ((ktime_t)(t) - (s64)(us) * 1000)
#define ktime_ms_delta(a, b) (((ktime_t)(a) - (ktime_t)(b)) / 1000000)
#define ktime_after(a, b) ((ktime_t)(a) > (ktime_t)(b))
#define ktime_before(a, b) ((ktime_t)(a) < (ktime_t)(b))
#define ktime_set(seconds, ns) ((ktime_t)((seconds) * 1000000000ll + (s64)(ns)))
#define ns_to_ktime(ns) ((ktime_t)(ns))
#define ms_to_ktime(ms) ((ktime_t)(ms) * 1000000)
struct timespec64 { s64 tv_sec; long tv_nsec; };
static inline struct timespec64 ackclock_timespec(u64 ns)
{
	return (struct timespec64){ .tv_sec = (s64)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
}
#define ktime_to_timespec64(t) ackclock_timespec((u64)(t))
#define ns_to_timespec64(ns) ackclock_timespec((u64)(ns))
#define ktime_get_ts64(into) ((void)(*(into) = ackclock_timespec(ackclock_clock.ns)))
#define ktime_get_real_ts64(into) ktime_get_ts64(into)
#define ktime_get_coarse_real_ts64(into) ktime_get_ts64(into)
#define ktime_get_boottime_ts64(into) ktime_get_ts64(into)
#define ktime_get_raw_ts64(into) ktime_get_ts64(into)
static inline s64 ktime_get_seconds(void) { return (s64)(ackclock_clock.ns / 1000000000); }
#define ktime_get_real_seconds() ktime_get_seconds()
#define ktime_get_boottime_seconds() ktime_get_seconds()
#define get_seconds() ((unsigned long)ktime_get_seconds())
#define ktime_get_real_ns() ktime_get_ns()
#define ktime_get_boottime_ns() ktime_get_ns()
#define ktime_get_raw_ns() ktime_get_ns()
#define ktime_get_raw() ktime_get()
#define ktime_get_boottime() ktime_get()
/* TCP timestamps before Linux 4.13, which counted ticks. */
#define tcp_time_stamp ((u32)jiffies)
#define ktime_get_real() ktime_get()
#define ktime_get_mono_fast_ns() ktime_get_ns()
#define local_clock() ktime_get_ns()
#define sched_clock() ktime_get_ns()
#define tcp_clock_ns() ktime_get_ns()
#define tcp_clock_us() (ktime_get_ns() / 1000)

/* Random numbers of the connection, derived from the run's seed. */
u64 get_random_u64(void);
u32 get_random_u32(void);
u32 get_random_u32_below(u32 ceiling);
static inline u16 get_random_u16(void) { return (u16)get_random_u32_below(1U << 16); }
static inline u8 get_random_u8(void) { return (u8)get_random_u32_below(1U << 8); }
static inline u32 get_random_u32_inclusive(u32 floor, u32 ceiling) { return floor + get_random_u32_below(ceiling - floor + 1); }
static inline u32 get_random_u32_above(u32 floor) { return get_random_u32_inclusive(floor + 1, U32_MAX); }
static inline unsigned long get_random_long(void) { return get_random_u64(); }
#define prandom_u32() get_random_u32()
#define prandom_u32_max(n) get_random_u32_below(n)
void get_random_bytes(void *into, size_t length);

/* Memory. */
#define GFP_KERNEL 0u
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u
#define GFP_NOWAIT_FLAGS 0u
void *ackclock_allocate(size_t n, size_t size);
void kfree(const void *memory);
#define kmalloc(size, gfp) ackclock_allocate(1, size)
#define kzalloc(size, gfp) ackclock_allocate(1, size)
#define kcalloc(n, size, gfp) ackclock_allocate(n, size)
#define kmalloc_array(n, size, gfp) ackclock_allocate(n, size)
#define kvmalloc(size, gfp) ackclock_allocate(1, size)
#define kvzalloc(size, gfp) ackclock_allocate(1, size)
#define kvfree(memory) kfree(memory)
#define kzalloc_obj(what, ...) ((__typeof__(what) *)ackclock_allocate(1, sizeof(__typeof__(what))))
#define kmalloc_obj(what, ...) kzalloc_obj(what)
#define kzalloc_objs(what, n, ...) ((__typeof__(what) *)ackclock_allocate(n, sizeof(__typeof__(what))))
#define kmalloc_objs(what, n, ...) kzalloc_objs(what, n)
#define memset __builtin_memset
#define memcpy __builtin_memcpy
#define memmove __builtin_memmove
#define memcmp __builtin_memcmp
#define strcmp __builtin_strcmp
#define strlen __builtin_strlen

/* Messages become lines of the run's log, with the simulated time. A failed BUG_ON ends the run. */
void ackclock_say(const char *form, ...) __attribute__((__format__(__printf__, 1, 2)));
static inline __attribute__((__format__(__printf__, 1, 2))) int ackclock_quiet(const char *form, ...) { (void)form; return 0; }
#ifndef pr_fmt
#define pr_fmt(form) form
#endif
#define printk(...) ({ ackclock_say(__VA_ARGS__); 0; })
#define _printk(...) printk(__VA_ARGS__)
#define printk_once(...) printk(__VA_ARGS__)
#define printk_ratelimited(...) printk(__VA_ARGS__)
#define trace_printk(...) printk(__VA_ARGS__)
#define ACKCLOCK_PR(form, ...) printk(pr_fmt(form), ##__VA_ARGS__)
#define pr_emerg(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_alert(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_crit(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_err(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_warn(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_warning(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_notice(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_info(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_cont(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_err_once(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_warn_once(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_info_once(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_err_ratelimited(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_warn_ratelimited(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_info_ratelimited(...) ACKCLOCK_PR(__VA_ARGS__)
#define pr_notice_ratelimited(...) ACKCLOCK_PR(__VA_ARGS__)
#define net_info_ratelimited(...) ACKCLOCK_PR(__VA_ARGS__)
#define net_warn_ratelimited(...) ACKCLOCK_PR(__VA_ARGS__)
#ifdef DEBUG /* as in the kernel: no output unless the file or its flags define DEBUG */
#define pr_debug(...) ACKCLOCK_PR(__VA_ARGS__)
#else
#define pr_debug(...) ackclock_quiet(__VA_ARGS__)
#endif
#define pr_devel(...) pr_debug(__VA_ARGS__)
#define pr_debug_once(...) pr_debug(__VA_ARGS__)
#define pr_debug_ratelimited(...) pr_debug(__VA_ARGS__)
#define net_dbg_ratelimited(...) pr_debug(__VA_ARGS__)
#define KERN_EMERG ""
#define KERN_ALERT ""
#define KERN_CRIT ""
#define KERN_ERR ""
#define KERN_WARNING ""
#define KERN_NOTICE ""
#define KERN_INFO ""
#define KERN_DEBUG ""
#define KERN_CONT ""
#define WARN_ON(wrong) unlikely(!!(wrong))
#define WARN_ON_ONCE(wrong) unlikely(!!(wrong))
#define WARN(wrong, ...) unlikely(!!(wrong))
#define WARN_ONCE(wrong, ...) unlikely(!!(wrong))
#define DEBUG_NET_WARN_ON_ONCE(wrong) ((void)(wrong))
#define BUG() __builtin_trap()
#define BUG_ON(wrong) do { if (unlikely(wrong)) __builtin_trap(); } while (0)
#define EINVAL 22
#define EFAULT 14
#define ENOMEM 12
#define EEXIST 17
#define ENOENT 2
#define EPERM 1
#define EBUSY 16
#define EOPNOTSUPP 95
#define ENOBUFS 105
#define ERANGE 34

/* Modules. */
struct module { int unused; };
#define THIS_MODULE ((struct module *)0)
#define MODULE_AUTHOR(...)
#define MODULE_LICENSE(...)
#define MODULE_DESCRIPTION(...)
#define MODULE_VERSION(...)
#define MODULE_ALIAS(...)
#define MODULE_INFO(...)
#define MODULE_SOFTDEP(...)
#define MODULE_PARM_DESC(...)
#define EXPORT_SYMBOL(...)
#define EXPORT_SYMBOL_GPL(...)
#define KBUILD_MODNAME "ackclock"
#define IS_ENABLED(x) 0
#define IS_BUILTIN(x) 0
#define IS_MODULE(x) 1
/* Array parameters cannot be set by options. */
#ifdef ACKCLOCK_BESIDE /* compiled only for functions that another file calls */
#define module_init(f) static __maybe_unused int (*const ackclock_init_)(void) = f;
#define module_param_named(given, value, type, mode)
#else
#define module_init(f) int ackclock_module_init(void) { return f(); }
struct ackclock_parameter { struct ackclock_parameter *next; const char *name; void *value; int kind; };
void ackclock_parameter(struct ackclock_parameter *);
#define ACKCLOCK_KIND(value) _Generic((value), bool: 9, u8: 1, u16: 2, u32: 4, u64: 8, unsigned long: 8, char *: 10, \
	s8: -1, s16: -2, s32: -4, s64: -8, long: -8, default: 0)
#define module_param_named(given, value, type, mode) \
	static void __attribute__((__constructor__)) ackclock_parameter_##given(void) \
	{ \
		static struct ackclock_parameter p = { 0, #given, &value, ACKCLOCK_KIND(value) }; \
		ackclock_parameter(&p); \
	}
#endif
#define module_param_array(...)
#define late_initcall(f) module_init(f)
#define subsys_initcall(f) module_init(f)
#define device_initcall(f) module_init(f)
#define module_exit(f) static __maybe_unused void (*const ackclock_exit_)(void) = f;
#define module_param(name, type, mode) module_param_named(name, name, type, mode)

/* Parameters with their own set and get functions cannot be set by options. */
struct kernel_param { const char *name; void *arg; };
struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *value, const struct kernel_param *kp);
	int (*get)(char *into, const struct kernel_param *kp);
	void (*free)(void *arg);
};
#define module_param_cb(name, ops, arg, mode)
static inline int param_set_uint_minmax(const char *value, const struct kernel_param *kp, unsigned int low, unsigned int high)
{
	(void)value, (void)kp, (void)low, (void)high;
	return 0;
}
static inline int param_get_uint(char *into, const struct kernel_param *kp) { (void)into, (void)kp; return 0; }
static inline int param_get_int(char *into, const struct kernel_param *kp) { (void)into, (void)kp; return 0; }

/* Registration with BPF: no effect. */
#define BTF_KFUNCS_START(name) static __maybe_unused struct btf_id_set8 name;
#define BTF_KFUNCS_END(name)
#define BTF_SET8_START(name) static __maybe_unused struct btf_id_set8 name;
#define BTF_SET8_END(name)
#define BTF_SET_START(name) static __maybe_unused struct btf_id_set name;
#define BTF_SET_END(name)
#define BTF_ID_FLAGS(...)
#define BTF_ID(...)
struct btf_id_set { int unused; };
struct btf_id_set8 { int unused; };
struct btf_kfunc_id_set { struct module *owner; struct btf_id_set8 *set; struct btf_id_set *check_set; void *filter; };
enum { BPF_PROG_TYPE_STRUCT_OPS = 27 };
static inline int register_btf_kfunc_id_set(int type, const struct btf_kfunc_id_set *set) { (void)type; (void)set; return 0; }
#define DEFINE_KFUNC_BTF_ID_SET(of, name) struct btf_id_set *name __maybe_unused = (of)
#define register_kfunc_btf_id_set(list, set) ((void)0)
#define unregister_kfunc_btf_id_set(list, set) ((void)0)

/* Lists; locks do nothing. */
struct list_head { struct list_head *next, *prev; };
#define spin_lock(l) ((void)(l))
#define spin_unlock(l) ((void)(l))
#define rcu_read_lock() do { } while (0)
#define rcu_read_unlock() do { } while (0)
#define rcu_dereference(p) (p)

/* Filter for a running minimum or maximum over a window. */
struct minmax_sample { u32 t, v; };
struct minmax { struct minmax_sample s[3]; };
static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
u32 minmax_reset(struct minmax *m, u32 t, u32 meas);
u32 minmax_running_max(struct minmax *m, u32 win, u32 t, u32 meas);
u32 minmax_running_min(struct minmax *m, u32 win, u32 t, u32 meas);

/* A connection. */
struct sock;
struct sk_buff;
struct nlattr;
struct rate_sample;
struct ack_sample;
union tcp_cc_info;

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)
enum tcp_ca_event {
	CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE,
	CA_EVENT_TLP_RECOVERY, /* kernels with BBRv3 only; sent to modules that implement skb_marked_lost */
};
enum tcp_ca_ack_event_flags { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };
enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { TCP_ESTABLISHED = 1, TCP_CLOSE = 7, TCP_LISTEN = 10 };

#define TCP_CA_NAME_MAX 16
#define TCP_CA_UNSPEC 0
#define TCP_CONG_NON_RESTRICTED BIT(0)
#define TCP_CONG_NEEDS_ECN BIT(1)
#define TCP_CONG_NEEDS_ACCECN BIT(2)
#define TCP_CONG_ECT_1_NEGOTIATION BIT(3)
#define TCP_CONG_NO_FALLBACK_RFC3168 BIT(4)
#define TCP_CONG_ECT_1_ESTABLISH BIT(5)
#define TCP_CONG_WANTS_CE_EVENTS BIT(6)
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_MSS_DEFAULT 536U
#define TCP_MIN_MSS 88U
#define TCP_RTO_MAX ((unsigned int)(120 * HZ))
#define TCP_RTO_MIN ((unsigned int)(HZ / 5))
#define TCP_TIMEOUT_INIT ((unsigned int)(1 * HZ))
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
#define MAX_TCP_WINDOW 32767U
#define MAX_TCP_HEADER 320
#define GSO_MAX_SIZE 65536u
#define GSO_LEGACY_MAX_SIZE 65536u
#define GSO_MAX_SEGS 65535u
#define TCP_ECN_ECT_1 32
#define TCP_ECN_LOW 16
#define TCP_ECN_ECT_PERMANENT 64
#define TCP_ECN_MODE_RFC3168 TCP_ECN_OK
#ifndef ICSK_CA_PRIV_SIZE /* 144 in kernels with BBRv3 */
#define ICSK_CA_PRIV_SIZE 104
#endif

/* Signature of `cong_control`: before Linux 6.10 with `-DACKCLOCK_BARE_CONTROL`, otherwise since 6.10. */
#ifdef ACKCLOCK_BARE_CONTROL
#define ACKCLOCK_CONTROL(name) void (*name)(struct sock *sk, const struct rate_sample *rs)
#else
#define ACKCLOCK_CONTROL(name) void (*name)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#endif
/* Signature of `pkts_acked`: before Linux 4.7 with `-DACKCLOCK_BARE_ACKED`, otherwise since 4.7. */
#ifdef ACKCLOCK_BARE_ACKED
#define ACKCLOCK_ACKED(name) void (*name)(struct sock *sk, u32 pkts_acked, s32 rtt_us)
#else
#define ACKCLOCK_ACKED(name) void (*name)(struct sock *sk, const struct ack_sample *sample)
#endif

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	ACKCLOCK_ACKED(pkts_acked);
	u32 (*min_tso_segs)(struct sock *sk);                  /* sizes of packets of several segments. Never called: */
	u32 (*tso_segs_goal)(struct sock *sk);                 /* the simulator derives burst sizes from the pacing */
	u32 (*tso_segs)(struct sock *sk, unsigned int mss_now); /* rate, as Linux does for modules without these three */
	ACKCLOCK_CONTROL(cong_control);
	void (*skb_marked_lost)(struct sock *sk, const struct sk_buff *skb);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	struct list_head list;
	u32 key;
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct ack_sample { u32 pkts_acked; s32 rtt_us; u32 in_flight; };

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
	/* fields of kernels with BBRv3 */
	u32 prior_lost;
	u32 tx_in_flight;
	u32 lost;
	bool is_acking_tlp_retrans_seq;
	bool is_ece;
};

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
	u16 sk_gso_max_segs;
	u8 sk_pacing_shift;
	u8 sk_state;
};

struct inet_connection_sock {
	struct sock icsk_sock;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 icsk_rto;
	u8 icsk_ca_state;
	u8 icsk_ca_initialized;
	struct { u8 pending; } icsk_ack;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;         /* time of the ACK, us */
	u64 tcp_clock_cache;    /* time of the ACK, ns */
	u64 tcp_wstamp_ns;      /* earliest departure of the next segment, ns */
	u64 delivered_mstamp;
	u64 bytes_acked;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 mss_cache;
	u32 srtt_us;            /* smoothed RTT << 3 */
	u32 sacked_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 lsndtime;
	struct minmax rtt_min;
	u32 rcv_nxt;
	/* Segments between snd_una and snd_nxt. Those in flight number packets_out - (sacked_out + lost_out) + retrans_out. */
	u32 packets_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	/* Every transmission so far: delivered, considered lost, or in flight. */
	u32 data_segs_out;
	u32 segs_out;
	u32 total_retrans;
	u64 bytes_sent;
	u64 bytes_retrans;
	u32 write_seq;          /* snd_nxt, plus one segment if data waits to be sent */
	u32 snd_wnd;            /* peer's receive window, bytes: always the largest that TCP allows */
	u32 reordering;
	u16 advmss;
	u16 tcp_header_len;
	u32 first_tx_mstamp;
	bool tlp_orig_data_app_limited;
	u8 fast_ack_mode;
	u8 is_cwnd_limited;
	u8 ecn_flags;
	/* values returned by the inline functions below */
	u32 ackclock_in_flight;
	u8 ackclock_cwnd_limited;
	u32 ackclock_asked_cwr; /* whether tcp_enter_cwr was called */
};

static inline struct tcp_sock *ackclock_tcp_sk(const struct sock *sk) { return (struct tcp_sock *)sk; }
static inline struct inet_connection_sock *ackclock_inet_csk(const struct sock *sk) { return (struct inet_connection_sock *)sk; }
#define tcp_sk(sk) ackclock_tcp_sk((const struct sock *)(sk))
#define inet_csk(sk) ackclock_inet_csk((const struct sock *)(sk))
static inline void *inet_csk_ca(const struct sock *sk) { return (void *)inet_csk(sk)->icsk_ca_priv; }
static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 cwnd) { tp->snd_cwnd = cwnd; }
static inline bool tcp_in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp) { return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH; }
static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return (TCPF_CA_CWR | TCPF_CA_Recovery) & (1 << inet_csk(sk)->icsk_ca_state);
}
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_in_cwnd_reduction(sk) ? tp->snd_ssthresh : max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}
static inline bool tcp_is_cwnd_limited(const struct sock *sk) { return tcp_sk(sk)->ackclock_cwnd_limited; }
static inline unsigned int tcp_packets_in_flight(const struct tcp_sock *tp) { return tp->ackclock_in_flight; }
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return minmax_get(&tp->rtt_min); }
static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) { return later > earlier ? (u32)(later - earlier) : 0; }
static inline u32 tcp_stamp32_us_delta(u32 later, u32 earlier) { return max_t(s32, later - earlier, 0); }
static inline bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
#define after(a, b) before(b, a)
static inline bool between(u32 x, u32 low, u32 high) { return high - low >= x - low; }
static inline unsigned int tcp_left_out(const struct tcp_sock *tp) { return tp->sacked_out + tp->lost_out; }
static inline int tcp_mss_to_mtu(struct sock *sk, int mss) { return mss + tcp_sk(sk)->tcp_header_len + 20; }
static inline bool tcp_needs_internal_pacing(const struct sock *sk) { return sk->sk_pacing_status == SK_PACING_NEEDED; }
static inline u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss, int least)
{
	u64 bytes = min_t(u64, sk->sk_pacing_rate >> sk->sk_pacing_shift, sk->sk_gso_max_size - 1 - MAX_TCP_HEADER);

	return min_t(u32, max_t(u32, (u32)(bytes / mss), (u32)least), sk->sk_gso_max_segs);
}

/* A segment: the argument of `skb_marked_lost`, or the next one to be sent (`tcp_send_head`). */
struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u8 tcp_flags;
	u8 sacked;
	u16 tcp_gso_segs;
	struct {
		bool is_app_limited;
		u32 in_flight;
		u32 lost;
		u32 delivered;
		u64 first_tx_mstamp, delivered_mstamp;
	} tx;
};
struct sk_buff { unsigned int len; struct tcp_skb_cb ackclock_cb; };
#define TCP_SKB_CB(skb) (&((struct sk_buff *)(skb))->ackclock_cb)
#define TCPCB_SACKED_ACKED 1
#define TCPCB_SACKED_RETRANS 2
#define TCPCB_LOST 4
#define TCPCB_EVER_RETRANS 128
#define TCPHDR_FIN 1
#define TCPHDR_SYN 2
#define TCPHDR_PSH 8
#define TCPHDR_ACK 16
#define TCPHDR_ECE 64
#define TCPHDR_CWR 128
static inline u32 tcp_skb_pcount(const struct sk_buff *skb) { return TCP_SKB_CB(skb)->tcp_gso_segs; }
/* BBRv3 warns of a segment larger than all data in flight when it was sent, which cannot happen in the simulator. */
#define tcp_skb_tx_in_flight_is_suspicious(segments, flags, tx_in_flight) ((void)(segments), (void)(flags), (void)(tx_in_flight), false)
static inline u32 tcp_wnd_end(const struct tcp_sock *tp) { return tp->snd_una + tp->snd_wnd; }
struct sk_buff *tcp_send_head(const struct sock *sk);
static inline void sk_pacing_shift_update(struct sock *sk, int shift) { sk->sk_pacing_shift = (u8)shift; }
static inline void tcp_enter_cwr(struct sock *sk) { tcp_sk(sk)->ackclock_asked_cwr = 1; }

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);
extern struct tcp_congestion_ops tcp_reno;

/* System-wide counters: never updated. */
enum {
	LINUX_MIB_TCPHYSTARTTRAINDETECT, LINUX_MIB_TCPHYSTARTTRAINCWND, LINUX_MIB_TCPHYSTARTDELAYDETECT, LINUX_MIB_TCPHYSTARTDELAYCWND,
};
/* System-wide settings, with the defaults of Linux. */
struct netns_ipv4 {
	int sysctl_tcp_ecn, sysctl_tcp_reordering, sysctl_tcp_max_reordering, sysctl_tcp_min_tso_segs, sysctl_tcp_tso_win_divisor, sysctl_tcp_tso_rtt_log;
	int sysctl_tcp_pacing_ss_ratio, sysctl_tcp_pacing_ca_ratio, sysctl_tcp_slow_start_after_idle, sysctl_tcp_sack, sysctl_tcp_timestamps;
	int sysctl_tcp_window_scaling, sysctl_tcp_early_retrans, sysctl_tcp_recovery, sysctl_tcp_frto, sysctl_tcp_fastopen, sysctl_tcp_moderate_rcvbuf;
	int sysctl_tcp_limit_output_bytes, sysctl_tcp_notsent_lowat, sysctl_tcp_min_rtt_wlen, sysctl_tcp_plb_enabled, sysctl_tcp_no_metrics_save;
	int sysctl_tcp_wmem[3], sysctl_tcp_rmem[3];
};
struct net { struct netns_ipv4 ipv4; };
extern struct net ackclock_net;
extern struct net init_net;
#define sock_net(sk) ((void)(sk), &ackclock_net)
#define NET_INC_STATS(net, what) ((void)(net), (void)(what))
#define NET_ADD_STATS(net, what, n) ((void)(net), (void)(what), (void)(n))

/* Result of a BPF program for a socket: none is loaded. */
enum { BPF_SOCK_OPS_RWND_INIT = 2, BPF_SOCK_OPS_BASE_RTT = 7 };
static inline int tcp_call_bpf(struct sock *sk, int op, u32 n, u32 *args) { (void)sk, (void)op, (void)n, (void)args; return -1; }

/* PLB (rerouting under congestion) is off, which is the default. */
struct tcp_plb_state { u8 consec_cong_rounds:5, unused:3; u32 pause_until; } __packed;
static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
static inline void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *plb, int ratio) { (void)sk, (void)plb, (void)ratio; }
static inline void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
static inline void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
#define TCP_PLB_SCALE 8

/* No effect: the simulator implements the receiver. */
enum { ICSK_ACK_SCHED = 1, ICSK_ACK_TIMER = 2, ICSK_ACK_PUSHED = 4, ICSK_ACK_NOW = 16 };
#define tcp_ecn_mode_any(tp) (true)
#define tcp_ecn_mode_rfc3168(tp) (true)
#define INET_ECN_xmit(sk) ((void)(sk))
#define INET_ECN_dontxmit(sk) ((void)(sk))
#define TCP_ECN_MODE_ANY 3
static inline void __tcp_send_ack(struct sock *sk, u32 rcv_nxt, u16 flags) { (void)sk, (void)rcv_nxt, (void)flags; }

/* Controller state that `ss -i` shows. */
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };
struct tcpvegas_info { u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt; };
struct tcp_dctcp_info { u16 dctcp_enabled, dctcp_ce_state; u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot; };
enum tcp_bbr_phase {
	BBR_PHASE_INVALID, BBR_PHASE_STARTUP, BBR_PHASE_DRAIN, BBR_PHASE_PROBE_RTT,
	BBR_PHASE_PROBE_BW_UP, BBR_PHASE_PROBE_BW_DOWN, BBR_PHASE_PROBE_BW_CRUISE, BBR_PHASE_PROBE_BW_REFILL,
};
struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb; /* from here on BBRv3 only */
	u8 bbr_mode, bbr_phase, unused1, bbr_version;
	u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};
union tcp_cc_info { struct tcpvegas_info vegas; struct tcp_dctcp_info dctcp; struct tcp_bbr_info bbr; };

#endif
