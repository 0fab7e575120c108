/* ngtcp2 behind ackclock_stack.h: one connection with one bidirectional stream, which the client opens.
 *
 * Cryptography is simulated: nothing is encrypted, but packets carry a 16-byte tag with key and packet number, and
 * handshake messages are as long as those of TLS 1.3. Round trips and sizes are therefore realistic, and no TLS library
 * is needed.
 *
 * Length: one connection is read as a whole, and users copy a single file. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ngtcp2/ngtcp2.h>

#include "ackclock_stack.h"
#include "ngtcp2_log.h"

#define TAG 16
#define IV 12
#define SECRET 32
#define MESSAGE 16384 /* a message of the handshake, at most */
#define NONE ACK_STACK_NONE

static const uint8_t zeros[65536];

/* Kinds of handshake messages, and the sizes to which they are padded, bytes. */
enum { CLIENT_HELLO = 1, SERVER_HELLO, FLIGHT, FINISHED };
enum { HELLO_BYTES = 300, SERVER_HELLO_BYTES = 90, FINISHED_BYTES = 36 };

struct ack_stack {
  int is_server;
  ngtcp2_conn *conn; /* a server has one when the first packet is there */
  ngtcp2_path path;
  struct sockaddr_in own, peer;
  uint64_t random;
  ngtcp2_cc_algo algorithm;
  uint64_t window, initial_rtt_ms, idle_s, ack_threshold, mtu, certificate, paced;
  int discovery;
  /* Handshake data received so far, by encryption level. */
  uint8_t heard[4][MESSAGE];
  size_t heard_len[4];
  int64_t stream;
  uint64_t to_write, written, acked, received;
  int forever, finishes, has_finished, fin_is_acked, peer_finished, is_open;
  uint64_t burst;
  uint64_t sent, lost, acks;
  uint64_t deadline;
  const char *failure;
  uint8_t farewell[1500];
  size_t farewell_len;
};

/* splitmix64 */
static uint64_t draw(ack_stack *s) {
  uint64_t z = s->random += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

static void draw_bytes(ack_stack *s, uint8_t *into, size_t len) {
  for (size_t i = 0; i < len; i += 8) {
    uint64_t word = draw(s);
    memcpy(into + i, &word, len - i < 8 ? len - i : 8);
  }
}

/* ---- simulated cryptography ---- */

static uint64_t sum_of(uint64_t sum, const uint8_t *bytes, size_t len) {
  uint64_t word;
  for (; len >= 8; bytes += 8, len -= 8) {
    memcpy(&word, bytes, 8);
    sum = (sum ^ word) * 0x100000001b3ULL, sum ^= sum >> 29;
  }
  for (; len; bytes++, len--) sum = (sum ^ *bytes) * 0x100000001b3ULL;
  return sum;
}

/* Tag: the packet number (end of the nonce), and a sum over key, header and payload, so that altered
 * packets are rejected. */
static void tag_of(uint8_t *tag, const ngtcp2_crypto_aead_ctx *key, const uint8_t *nonce, const uint8_t *plain, size_t len,
                   const uint8_t *aad, size_t aadlen) {
  uint64_t sum = sum_of(sum_of(0xcbf29ce484222325ULL + (uintptr_t)key->native_handle, aad, aadlen), plain, len);
  memcpy(tag, nonce + 4, 8);
  memcpy(tag + 8, &sum, 8);
}

static int encrypt(uint8_t *dest, const ngtcp2_crypto_aead *aead, const ngtcp2_crypto_aead_ctx *key, const uint8_t *plain, size_t len,
                   const uint8_t *nonce, size_t noncelen, const uint8_t *aad, size_t aadlen) {
  (void)aead, (void)noncelen;
  if (len) memmove(dest, plain, len);
  tag_of(dest + len, key, nonce, dest, len, aad, aadlen);
  return 0;
}

static int decrypt(uint8_t *dest, const ngtcp2_crypto_aead *aead, const ngtcp2_crypto_aead_ctx *key, const uint8_t *sealed, size_t len,
                   const uint8_t *nonce, size_t noncelen, const uint8_t *aad, size_t aadlen) {
  (void)aead, (void)noncelen;
  uint8_t tag[TAG];
  if (len < TAG) return NGTCP2_ERR_DECRYPT;
  tag_of(tag, key, nonce, sealed, len - TAG, aad, aadlen);
  if (memcmp(tag, sealed + len - TAG, TAG)) return NGTCP2_ERR_DECRYPT;
  memmove(dest, sealed, len - TAG);
  return 0;
}

static int hp_mask(uint8_t *dest, const ngtcp2_crypto_cipher *hp, const ngtcp2_crypto_cipher_ctx *key, const uint8_t *sample) {
  (void)hp, (void)key, (void)sample;
  memset(dest, 0, NGTCP2_HP_MASKLEN);
  return 0;
}

/* Key by number: 1 for Initial packets, 2 for handshake packets, 3 for data. */
static ngtcp2_crypto_aead_ctx key_of(int number) {
  ngtcp2_crypto_aead_ctx key = {(void *)(uintptr_t)number};
  return key;
}

static const uint8_t iv[IV], secret[SECRET];
static const ngtcp2_crypto_cipher_ctx header_key = {(void *)(uintptr_t)1};

static ngtcp2_crypto_ctx context(void) {
  ngtcp2_crypto_ctx context;
  memset(&context, 0, sizeof(context));
  context.aead.max_overhead = TAG;
  context.max_encryption = context.max_decryption_failure = UINT64_MAX;
  return context;
}

static int install_initial(ngtcp2_conn *conn) {
  ngtcp2_crypto_ctx plain = context();
  ngtcp2_crypto_aead_ctx key = key_of(1);
  ngtcp2_conn_set_initial_crypto_ctx(conn, &plain);
  return ngtcp2_conn_install_initial_key(conn, &key, iv, &header_key, &key, iv, &header_key, IV) ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int install_handshake(ngtcp2_conn *conn) {
  ngtcp2_crypto_ctx plain = context();
  ngtcp2_crypto_aead_ctx key = key_of(2);
  ngtcp2_conn_set_crypto_ctx(conn, &plain);
  return ngtcp2_conn_install_rx_handshake_key(conn, &key, iv, IV, &header_key) ||
         ngtcp2_conn_install_tx_handshake_key(conn, &key, iv, IV, &header_key);
}

static int install_rx(ngtcp2_conn *conn) {
  ngtcp2_crypto_aead_ctx key = key_of(3);
  return ngtcp2_conn_install_rx_key(conn, secret, SECRET, &key, iv, IV, &header_key);
}

static int install_tx(ngtcp2_conn *conn) {
  ngtcp2_crypto_aead_ctx key = key_of(3);
  return ngtcp2_conn_install_tx_key(conn, secret, SECRET, &key, iv, IV, &header_key);
}

/* Write a handshake message: kind, total length, length of the transport parameters, the parameters,
 * padding. */
static int say(ngtcp2_conn *conn, ngtcp2_encryption_level level, int kind, size_t bytes) {
  uint8_t message[MESSAGE];
  size_t params = 0;
  memset(message, 0, sizeof(message));
  if (kind == CLIENT_HELLO || kind == FLIGHT) {
    ngtcp2_ssize n = ngtcp2_conn_encode_local_transport_params(conn, message + 5, 1024);
    if (n < 0) return (int)n;
    params = (size_t)n;
  }
  if (bytes < params + 5) bytes = params + 5;
  message[0] = (uint8_t)kind;
  message[1] = (uint8_t)(bytes >> 8), message[2] = (uint8_t)bytes;
  message[3] = (uint8_t)(params >> 8), message[4] = (uint8_t)params;
  return ngtcp2_conn_submit_crypto_data(conn, level, message, bytes);
}

static int hear(ngtcp2_conn *conn, ack_stack *s, ngtcp2_encryption_level level, int kind, const uint8_t *params, size_t len) {
  if (s->is_server && level == NGTCP2_ENCRYPTION_LEVEL_INITIAL && kind == CLIENT_HELLO) {
    return ngtcp2_conn_decode_and_set_remote_transport_params(conn, params, len) || install_handshake(conn) ||
           say(conn, NGTCP2_ENCRYPTION_LEVEL_INITIAL, SERVER_HELLO, SERVER_HELLO_BYTES) ||
           say(conn, NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE, FLIGHT, s->certificate) || install_tx(conn);
  }
  if (s->is_server && level == NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE && kind == FINISHED) {
    if (install_rx(conn)) return 1;
    ngtcp2_conn_tls_handshake_completed(conn);
    return 0;
  }
  if (!s->is_server && level == NGTCP2_ENCRYPTION_LEVEL_INITIAL && kind == SERVER_HELLO) return install_handshake(conn);
  if (!s->is_server && level == NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE && kind == FLIGHT) {
    if (ngtcp2_conn_decode_and_set_remote_transport_params(conn, params, len) ||
        say(conn, NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE, FINISHED, FINISHED_BYTES) || install_rx(conn) || install_tx(conn))
      return 1;
    ngtcp2_conn_tls_handshake_completed(conn);
    return 0;
  }
  return 1;
}

/* ---- callbacks for ngtcp2 ---- */

static int client_initial(ngtcp2_conn *conn, void *user) {
  (void)user;
  return install_initial(conn) || say(conn, NGTCP2_ENCRYPTION_LEVEL_INITIAL, CLIENT_HELLO, HELLO_BYTES) ? NGTCP2_ERR_CALLBACK_FAILURE
                                                                                                         : 0;
}

static int recv_client_initial(ngtcp2_conn *conn, const ngtcp2_cid *dcid, void *user) {
  (void)dcid, (void)user;
  return install_initial(conn);
}

static int recv_crypto(ngtcp2_conn *conn, ngtcp2_encryption_level level, uint64_t offset, const uint8_t *data, size_t len, void *user) {
  ack_stack *s = user;
  size_t *held = &s->heard_len[level & 3];
  uint8_t *heard = s->heard[level & 3];
  (void)offset; /* in order */
  if (len > MESSAGE - *held) return NGTCP2_ERR_CRYPTO;
  memcpy(heard + *held, data, len);
  *held += len;
  while (*held >= 5) {
    size_t whole = (size_t)heard[1] << 8 | heard[2], params = (size_t)heard[3] << 8 | heard[4];
    if (whole < 5 || params + 5 > whole) return NGTCP2_ERR_CRYPTO;
    if (*held < whole) return 0;
    int wrong = hear(conn, s, level, heard[0], heard + 5, params);
    if (wrong) return NGTCP2_ERR_CRYPTO;
    memmove(heard, heard + whole, *held - whole);
    *held -= whole;
  }
  return 0;
}

static int recv_retry(ngtcp2_conn *conn, const ngtcp2_pkt_hd *hd, void *user) {
  (void)hd, (void)user;
  return install_initial(conn);
}

static int handshake_completed(ngtcp2_conn *conn, void *user) {
  (void)conn;
  ((ack_stack *)user)->is_open = 1;
  return 0;
}

static int update_key(ngtcp2_conn *conn, uint8_t *rx_secret, uint8_t *tx_secret, ngtcp2_crypto_aead_ctx *rx, uint8_t *rx_iv,
                      ngtcp2_crypto_aead_ctx *tx, uint8_t *tx_iv, const uint8_t *rx_now, const uint8_t *tx_now, size_t len, void *user) {
  (void)conn, (void)user;
  memcpy(rx_secret, rx_now, len), memcpy(tx_secret, tx_now, len);
  *rx = *tx = key_of(3);
  memset(rx_iv, 0, IV), memset(tx_iv, 0, IV);
  return 0;
}

static void drop_aead(ngtcp2_conn *conn, ngtcp2_crypto_aead_ctx *key, void *user) { (void)conn, (void)key, (void)user; }
static void drop_cipher(ngtcp2_conn *conn, ngtcp2_crypto_cipher_ctx *key, void *user) { (void)conn, (void)key, (void)user; }

static int version_negotiation(ngtcp2_conn *conn, uint32_t version, const ngtcp2_cid *dcid, void *user) {
  (void)conn, (void)version, (void)dcid, (void)user;
  return NGTCP2_ERR_CALLBACK_FAILURE; /* there is one version */
}

static int new_id(ngtcp2_conn *conn, ngtcp2_cid *cid, uint8_t *token, size_t len, void *user) {
  (void)conn;
  cid->datalen = len;
  draw_bytes(user, cid->data, len);
  draw_bytes(user, token, NGTCP2_STATELESS_RESET_TOKENLEN);
  return 0;
}

static int challenge(ngtcp2_conn *conn, uint8_t *data, void *user) {
  (void)conn;
  draw_bytes(user, data, NGTCP2_PATH_CHALLENGE_DATALEN);
  return 0;
}

static void rand_bytes(uint8_t *dest, size_t len, const ngtcp2_rand_ctx *context) { draw_bytes(context->native_handle, dest, len); }

static int stream_open(ngtcp2_conn *conn, int64_t id, void *user) {
  (void)conn;
  ack_stack *s = user;
  if (s->stream < 0) s->stream = id;
  return 0;
}

static int recv_stream(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t len, void *user,
                       void *of_stream) {
  ack_stack *s = user;
  (void)offset, (void)data, (void)of_stream;
  s->received += len;
  if (flags & NGTCP2_STREAM_DATA_FLAG_FIN) s->peer_finished = 1;
  if (ngtcp2_conn_extend_max_stream_offset(conn, id, len)) return NGTCP2_ERR_CALLBACK_FAILURE;
  ngtcp2_conn_extend_max_offset(conn, len);
  return 0;
}

static int acked_stream(ngtcp2_conn *conn, int64_t id, uint64_t offset, uint64_t len, void *user, void *of_stream) {
  ack_stack *s = user;
  (void)conn, (void)id, (void)of_stream;
  if (offset + len > s->acked) s->acked = offset + len;
  return 0;
}

static int stream_close(ngtcp2_conn *conn, uint32_t flags, int64_t id, uint64_t code, void *user, void *of_stream) {
  ack_stack *s = user;
  (void)conn, (void)flags, (void)code, (void)of_stream;
  if (id == s->stream) s->fin_is_acked = 1;
  return 0;
}

/* Replacements for two functions of ngtcp2 that write the log; they count losses and ACKs. */
void __wrap_ngtcp2_log_pkt_lost(ngtcp2_log *log, int64_t number, uint8_t type, uint8_t flags, ngtcp2_tstamp sent) {
  (void)number, (void)type, (void)flags, (void)sent;
  if (log->user_data) ((ack_stack *)log->user_data)->lost++;
}

void __wrap_ngtcp2_log_rx_fr(ngtcp2_log *log, const ngtcp2_pkt_hd *hd, const ngtcp2_frame *frame) {
  (void)hd;
  if (log->user_data && (frame->type == NGTCP2_FRAME_ACK || frame->type == NGTCP2_FRAME_ACK_ECN)) ((ack_stack *)log->user_data)->acks++;
}

/* ---- settings ---- */

static const struct {
  const char *name;
  uint64_t least, most;
} options[] = {{"receive_window", 10000, 1000000000}, {"initial_rtt_ms", 1, 10000}, {"idle_timeout_s", 0, 100000},
               {"ack_threshold", 1, 1000},             {"mtu", 1200, 1452},          {"certificate", 100, 12000},
               {"paced", 0, 1}};

/* Read numbers from a JSON object. */
static int read_options(ack_stack *s, const char *text, char *reason, size_t room) {
  uint64_t *into[] = {&s->window, &s->initial_rtt_ms, &s->idle_s, &s->ack_threshold, &s->mtu, &s->certificate, &s->paced};
  const char *at = strchr(text, '{');
  while (at && *++at && *at != '}') {
    char key[40];
    unsigned long long value;
    int used = 0;
    size_t i, count = sizeof(options) / sizeof(*options);
    if (sscanf(at, " \"%39[a-z_]\" : %n", key, &used) == 1 && used && !strcmp(key, "mtu_discovery")) {
      at += used;
      s->discovery = !strncmp(at, "true", 4);
      at += strcspn(at, ",}");
    } else if (sscanf(at, " \"%39[a-z_]\" : %llu%n", key, &value, &used) == 2 && used) {
      for (i = 0; i < count && strcmp(key, options[i].name); i++) {
      }
      if (i == count) break;
      if (value < options[i].least || value > options[i].most) {
        snprintf(reason, room, "%s: %llu to %llu", key, (unsigned long long)options[i].least, (unsigned long long)options[i].most);
        return -1;
      }
      *into[i] = value;
      at += used;
    } else {
      break;
    }
    if (*at == '}') return 0;
  }
  if (at && *at == '}') return 0;
  snprintf(reason, room, "numbers: receive_window, initial_rtt_ms, idle_timeout_s, ack_threshold, mtu, certificate, paced; mtu_discovery");
  return -1;
}

static void look(ack_stack *s) { s->deadline = s->conn && !s->failure ? ngtcp2_conn_get_expiry(s->conn) : NONE; }

static int make(ack_stack *s, const ngtcp2_pkt_hd *first, uint64_t now) {
  ngtcp2_callbacks calls;
  ngtcp2_settings settings;
  ngtcp2_transport_params params;
  ngtcp2_cid dcid, scid;
  memset(&calls, 0, sizeof(calls));
  calls.client_initial = client_initial, calls.recv_client_initial = recv_client_initial, calls.recv_crypto_data = recv_crypto;
  calls.handshake_completed = handshake_completed, calls.encrypt = encrypt, calls.decrypt = decrypt, calls.hp_mask = hp_mask;
  calls.recv_stream_data = recv_stream, calls.acked_stream_data_offset = acked_stream, calls.stream_open = stream_open;
  calls.stream_close = stream_close, calls.recv_retry = recv_retry, calls.rand = rand_bytes, calls.get_new_connection_id = new_id;
  calls.update_key = update_key, calls.delete_crypto_aead_ctx = drop_aead, calls.delete_crypto_cipher_ctx = drop_cipher;
  calls.get_path_challenge_data = challenge, calls.version_negotiation = version_negotiation;
  ngtcp2_settings_default(&settings);
  settings.cc_algo = s->algorithm, settings.initial_ts = now, settings.initial_rtt = s->initial_rtt_ms * NGTCP2_MILLISECONDS;
  settings.rand_ctx.native_handle = s, settings.max_tx_udp_payload_size = s->mtu, settings.no_pmtud = !s->discovery;
  settings.no_tx_udp_payload_size_shaping = !s->discovery;
  settings.max_window = settings.max_stream_window = s->window, settings.ack_thresh = s->ack_threshold;
  ngtcp2_transport_params_default(&params);
  params.initial_max_stream_data_bidi_local = params.initial_max_stream_data_bidi_remote = params.initial_max_data = s->window;
  params.initial_max_streams_bidi = 1, params.max_idle_timeout = s->idle_s * NGTCP2_SECONDS;
  scid.datalen = 8;
  draw_bytes(s, scid.data, scid.datalen);
  if (first) {
    params.original_dcid = first->dcid, params.original_dcid_present = 1;
    return ngtcp2_conn_server_new(&s->conn, &first->scid, &scid, &s->path, first->version, &calls, &settings, &params, NULL, s);
  }
  dcid.datalen = 18;
  draw_bytes(s, dcid.data, dcid.datalen);
  return ngtcp2_conn_client_new(&s->conn, &dcid, &scid, &s->path, NGTCP2_PROTO_VER_V1, &calls, &settings, &params, NULL, s);
}

static void fail(ack_stack *s, int error, uint64_t now) {
  if (s->failure) return;
  if (error == NGTCP2_ERR_IDLE_CLOSE || error == NGTCP2_ERR_HANDSHAKE_TIMEOUT) {
    s->failure = "idle timeout";
  } else if (error == NGTCP2_ERR_DRAINING || error == NGTCP2_ERR_CLOSING) {
    s->failure = "closed by the peer";
  } else {
    ngtcp2_ccerr why;
    ngtcp2_pkt_info info;
    ngtcp2_ssize n;
    s->failure = ngtcp2_strerror(error);
    if (error == NGTCP2_ERR_DROP_CONN || error == NGTCP2_ERR_RETRY) return;
    ngtcp2_ccerr_default(&why);
    ngtcp2_ccerr_set_liberr(&why, error, NULL, 0);
    n = ngtcp2_conn_write_connection_close(s->conn, NULL, &info, s->farewell, sizeof(s->farewell), &why, now);
    s->farewell_len = n > 0 ? (size_t)n : 0;
  }
}

/* ---- functions of ackclock_stack.h ---- */

static ack_stack *stack_open(int is_server, const char *controller, const char *text, const uint8_t seed[32], uint64_t now, char *reason,
                             size_t room) {
  ack_stack *s = calloc(1, sizeof(*s));
  if (!s) return NULL;
  s->is_server = is_server, s->stream = -1;
  memcpy(&s->random, seed, 8);
  s->window = 6000000, s->initial_rtt_ms = 333, s->idle_s = 30, s->ack_threshold = 2, s->mtu = 1452, s->certificate = 1000, s->paced = 1;
  s->discovery = 1;
  if (!strcmp(controller, "cubic")) {
    s->algorithm = NGTCP2_CC_ALGO_CUBIC;
  } else if (!strcmp(controller, "reno")) {
    s->algorithm = NGTCP2_CC_ALGO_RENO;
  } else if (!strcmp(controller, "bbr")) {
    s->algorithm = NGTCP2_CC_ALGO_BBR;
  } else {
    snprintf(reason, room, "the controllers cubic, reno, bbr");
    free(s);
    return NULL;
  }
  if (read_options(s, text, reason, room)) {
    free(s);
    return NULL;
  }
  s->own.sin_family = s->peer.sin_family = AF_INET;
  s->own.sin_addr.s_addr = htonl(is_server ? 0x0a000002 : 0x0a000001), s->own.sin_port = htons(is_server ? 443 : 40000);
  s->peer.sin_addr.s_addr = htonl(is_server ? 0x0a000001 : 0x0a000002), s->peer.sin_port = htons(is_server ? 40000 : 443);
  s->path.local.addr = (struct sockaddr *)&s->own, s->path.local.addrlen = sizeof(s->own);
  s->path.remote.addr = (struct sockaddr *)&s->peer, s->path.remote.addrlen = sizeof(s->peer);
  if (!is_server && make(s, NULL, now)) {
    snprintf(reason, room, "memory");
    free(s);
    return NULL;
  }
  look(s);
  return s;
}

static void stack_datagram(ack_stack *s, uint64_t now, uint8_t ecn, const uint8_t *bytes, size_t len) {
  ngtcp2_pkt_info info = {ecn};
  if (s->failure) return;
  if (!s->conn) {
    ngtcp2_pkt_hd first;
    if (ngtcp2_accept(&first, bytes, len) || make(s, &first, now)) return;
  }
  int error = ngtcp2_conn_read_pkt(s->conn, &s->path, &info, bytes, len, now);
  if (error) fail(s, error, now);
  look(s);
}

static void stack_timer(ack_stack *s, uint64_t now) {
  if (s->conn && !s->failure && ngtcp2_conn_get_expiry(s->conn) <= now) {
    int error = ngtcp2_conn_handle_expiry(s->conn, now);
    if (error) fail(s, error, now);
  }
  look(s);
}

/* Write one packet with the data that is available. */
static ngtcp2_ssize write_one(ack_stack *s, uint64_t now, uint8_t *into, size_t room, ngtcp2_pkt_info *info, int *has_data) {
  int blocked = 0;
  for (;;) {
    uint64_t left = s->forever ? sizeof(zeros) : s->to_write;
    ngtcp2_vec data = {(uint8_t *)zeros, left < sizeof(zeros) ? (size_t)left : sizeof(zeros)};
    int ends = s->finishes && !s->forever && data.len == left;
    int writes = s->stream >= 0 && !s->has_finished && !blocked && (data.len || ends);
    ngtcp2_ssize taken = -1;
    ngtcp2_ssize n = ngtcp2_conn_writev_stream(s->conn, NULL, info, into, room, &taken,
                                               writes && ends ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE,
                                               writes ? s->stream : -1, writes ? &data : NULL, writes && data.len ? 1 : 0, now);
    if (writes && (n == NGTCP2_ERR_STREAM_DATA_BLOCKED || n == NGTCP2_ERR_STREAM_SHUT_WR || n == NGTCP2_ERR_STREAM_NOT_FOUND)) {
      blocked = 1;
      continue;
    }
    if (taken >= 0) {
      s->written += (uint64_t)taken;
      if (!s->forever) s->to_write -= (uint64_t)taken;
      if (ends && (size_t)taken == data.len) s->has_finished = 1;
      *has_data = taken > 0;
    }
    return n;
  }
}

static size_t stack_transmit(ack_stack *s, uint64_t now, uint8_t *into, size_t room, uint8_t *mark) {
  ngtcp2_pkt_info info = {0};
  int has_data = 0;
  if (s->farewell_len) {
    size_t len = s->farewell_len;
    memcpy(into, s->farewell, len);
    s->farewell_len = 0;
    return len;
  }
  if (!s->conn || s->failure) return 0;
  if (!s->is_server && s->stream < 0 && s->is_open && ngtcp2_conn_open_bidi_stream(s->conn, &s->stream, NULL)) s->stream = -1;
  ngtcp2_ssize n = 0;
  for (;;) {
    /* a quantum is sent in one go; then the pacer sets the next send time, which may be now */
    int rests = s->burst >= ngtcp2_conn_get_send_quantum(s->conn);
    n = rests ? 0 : write_one(s, now, into, room, &info, &has_data);
    if (n > 0) break;
    if (n < 0) fail(s, (int)n, now);
    if (!s->failure && s->burst && s->paced) ngtcp2_conn_update_pkt_tx_time(s->conn, now);
    s->burst = 0;
    int goes_on = rests && !s->failure && ngtcp2_conn_get_expiry(s->conn) <= now;
    stack_timer(s, now);
    if (!goes_on) return 0;
  }
  s->burst += (uint64_t)n;
  s->sent++;
  *mark = (uint8_t)((info.ecn & 3) | (has_data ? ACK_STACK_DATA : 0));
  return (size_t)n;
}

static uint64_t stack_deadline(const ack_stack *s) { return s->deadline; }

static void stack_write(ack_stack *s, uint64_t now, uint64_t bytes) {
  (void)now;
  if (bytes == NONE) {
    s->forever = 1;
  } else {
    s->to_write += bytes;
  }
}

static void stack_finish(ack_stack *s, uint64_t now) {
  (void)now;
  s->forever = 0;
  s->finishes = 1;
}

static uint64_t stack_received(const ack_stack *s) { return s->received; }
static int stack_peer_finished(const ack_stack *s) { return s->peer_finished; }

static int stack_state(const ack_stack *s, char *reason, size_t room) {
  int over = s->fin_is_acked && s->peer_finished;
  if (over) return ACK_STACK_CLOSED;
  if (s->failure) {
    snprintf(reason, room, "%s", s->failure);
    return ACK_STACK_FAILED;
  }
  return s->is_open ? ACK_STACK_OPEN : ACK_STACK_OPENING;
}

static void stack_sample(const ack_stack *s, ack_sample *into) {
  ngtcp2_conn_info info;
  memset(into, 0xff, sizeof(*into));
  into->sent = s->sent, into->lost = s->lost, into->acks = s->acks, into->acked = s->acked;
  if (!s->conn) return;
  ngtcp2_conn_get_conn_info(s->conn, &info);
  into->window = info.cwnd, into->in_flight = info.bytes_in_flight, into->ssthresh = info.ssthresh;
  into->mtu = ngtcp2_conn_get_path_max_tx_udp_payload_size(s->conn);
  if (!s->acks) return;
  into->latest_rtt_ns = info.latest_rtt, into->srtt_ns = info.smoothed_rtt, into->min_rtt_ns = info.min_rtt;
}

static void stack_close(ack_stack *s) {
  ngtcp2_conn_del(s->conn);
  free(s);
}

static const ack_stack_v1 table = {
    ACK_STACK_ABI, 28,           1,           "ngtcp2",       NGTCP2_VERSION, "cubic,reno,bbr",
    stack_open,    stack_datagram, stack_timer, stack_transmit, stack_deadline, stack_write,
    stack_finish,  stack_received, stack_peer_finished, stack_state, stack_sample, stack_close};

__attribute__((visibility("default"))) const ack_stack_v1 *ackclock_stack(void) { return &table; }
