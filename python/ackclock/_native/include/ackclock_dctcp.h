/* Replacement for the kernel's tcp_dctcp.h, used if a module includes it and its folder has none.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef ACKCLOCK_DCTCP_H
#define ACKCLOCK_DCTCP_H

#include <ackclock_kernel.h>

/* Empty: the simulator implements the receiver. */
static inline void dctcp_ece_ack_update(struct sock *sk, enum tcp_ca_event event, u32 *prior_rcv_nxt, u32 *ce_state)
{
	(void)sk, (void)event, (void)prior_rcv_nxt, (void)ce_state;
}

#endif
