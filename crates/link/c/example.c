/* A sender that keeps 40 packets in flight over a 10 Mbit/s path with a delay of 20 ms each way, and prints its throughput.
 *
 *   cargo rustc --release -p ackclock-link --features c --crate-type staticlib
 *   cc -I crates/link/c crates/link/c/example.c target/release/libackclock_link.a -lpthread -ldl -lm -o example && ./example
 */
#include "ackclock_link.h"
#include <stdio.h>

int main(void) {
    char why[200];
    ack_link *there = ack_link_new("rate = '10 Mbit/s'\ndelay = '20 ms'\nqueue = { kind = 'drop-tail', limit = '50 packets' }", 1, why, sizeof why);
    ack_link *back = ack_link_new("delay = '20 ms'", 2, why, sizeof why);
    if (!there || !back) return fprintf(stderr, "%s\n", why), 2;
    uint64_t now = 0, sent = 0, acked = 0;
    while (now < 5000000000u) {
        for (; sent - acked < 40; sent++) {
            ack_packet data = {.id = sent, .bytes = 1500, .data = 1};
            if (ack_link_enqueue(there, now, &data) != 0) return fprintf(stderr, "lost\n"), 1;
        }
        uint64_t a = ack_link_next_event(there), b = ack_link_next_event(back);
        now = a < b ? a : b;
        ack_packet packet;
        while (ack_link_dequeue(there, now, &packet) == 1) {
            ack_packet ack = {.id = packet.id, .bytes = 40};
            ack_link_enqueue(back, now, &ack);
        }
        while (ack_link_dequeue(back, now, &packet) == 1) acked++;
    }
    printf("%.2f Mbit/s\n", acked * 1500 * 8 / 5e6);
    ack_link_free(there);
    ack_link_free(back);
    return 0;
}
