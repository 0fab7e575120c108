/* Stands for the kernel's own tcp_dctcp.h where a module includes it and has none beside it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef ACKCLOCK_DCTCP_H
#define ACKCLOCK_DCTCP_H

#include <ackclock_kernel.h>

/* The receiving half is the simulator's. */
static inline void dctcp_ece_ack_update(struct sock *sk, enum tcp_ca_event event, u32 *prior_rcv_nxt, u32 *ce_state)
{
	(void)sk, (void)event, (void)prior_rcv_nxt, (void)ce_state;
}

#endif
