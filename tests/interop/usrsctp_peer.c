/*
 * usrsctp_peer: the other side of manypath's interoperability tests.
 *
 * One SCTP association on libusrsctp, over UDP encapsulation (RFC 6951), which sends, receives or echoes messages that
 * can be verified without knowing anything but a seed. Run it without arguments for the options; README.md has examples.
 *
 * The test pattern (mirrored by the Rust tests). Messages are numbered from 0. Message `index` has this layout:
 *
 *     offset 0   u32, network order   index
 *     offset 4   u32, network order   length of the whole message in bytes, these 8 included
 *     offset i   u8 (i >= 8)          (index * 31 + i * 7 + seed) & 0xff
 *
 * A message of less than 8 bytes has no such header: all its bytes are the last line's, and its index is told by its payload
 * protocol identifier only.
 *
 * Its size is the (index modulo list length)-th of --messages; it goes to stream index modulo --streams with
 * payload protocol identifier `index`. Messages are sent until at least BYTES bytes are: the last one is not cut.
 *
 * The receiver learns everything else from what arrives: each index exactly once, none missing below the highest (but see
 * --reliable-every), on each stream growing if the message is ordered.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <usrsctp.h>

#include "peer.h"

#ifndef SCTP_INTERLEAVING_SUPPORTED /* RFC 8260 §4.3.1; the library knows it, its header does not */
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

static struct socket *assoc_socket;
static uint8_t seen[INDEX_MAX / 8]; /* indexes that arrived */

/* ---- the pattern ---- */

static void put_u32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof value);
}

static uint32_t get_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return ntohl(value);
}

static uint8_t pattern_byte(uint32_t index, uint32_t offset)
{
	return (uint8_t)(index * 31u + offset * 7u + opt.seed);
}

static void fill_message(uint8_t *message, uint32_t index, uint32_t len)
{
	uint32_t from = len < HEADER_LEN ? 0 : HEADER_LEN;

	if (from != 0) {
		put_u32(message, index);
		put_u32(message + 4, len);
	}
	for (uint32_t i = from; i < len; i++)
		message[i] = pattern_byte(index, i);
}

/* Checks one complete message; every failure is reported, the first one is kept. */
static void check_message(const uint8_t *message, size_t len, const struct sctp_rcvinfo *info)
{
	static uint32_t next_on_stream[STREAMS_MAX + 1]; /* lowest index an ordered message may still have */
	uint32_t index, from = len < HEADER_LEN ? 0 : HEADER_LEN;

	if (from != 0 && get_u32(message + 4) != len) {
		fail("a message of %zu bytes does not carry its own length", len);
		return;
	}
	index = from != 0 ? get_u32(message) : ntohl(info->rcv_ppid);
	if (index >= INDEX_MAX) {
		fail("message index %" PRIu32 " is above %d", index, INDEX_MAX);
		return;
	}
	for (uint32_t i = from; i < len; i++) {
		if (message[i] != pattern_byte(index, i)) {
			fail("message %" PRIu32 " differs at offset %" PRIu32, index, i);
			break;
		}
	}
	if (seen[index / 8] & (1 << index % 8))
		fail("message %" PRIu32 " arrived twice", index);
	seen[index / 8] |= (uint8_t)(1 << index % 8);
	if (!(info->rcv_flags & SCTP_UNORDERED)) {
		if (index < next_on_stream[info->rcv_sid])
			fail("message %" PRIu32 " is out of order on stream %d", index, info->rcv_sid);
		next_on_stream[info->rcv_sid] = index + 1;
	}
	check_number(info);

	pthread_mutex_lock(&report.lock);
	report.bytes_received += len;
	report.messages_received++;
	report.reliable_received += is_reliable(index);
	if (index >= report.index_end)
		report.index_end = index + 1;
	if (ntohl(info->rcv_ppid) != index)
		report.ppid_mismatches++;
	pthread_cond_broadcast(&report.changed);
	pthread_mutex_unlock(&report.lock);
}

/* ---- sending and closing ---- */

static bool send_message(const void *data, size_t len, uint16_t sid, uint32_t ppid, uint16_t flags, bool limited)
{
	struct sctp_sndinfo info = { .snd_sid = sid, .snd_flags = flags, .snd_ppid = ppid };

	if (send_with_options(assoc_socket, data, len, &info, limited) < 0) {
		int error = errno;

		/* If the association ended under us, how it ended is the better answer (see verify_totals). */
		if (!wait_flag(&report.lost, 500))
			fail("send: %s", strerror(error));
		return false;
	}
	pthread_mutex_lock(&report.lock);
	report.bytes_sent += len;
	report.messages_sent++;
	pthread_mutex_unlock(&report.lock);
	return true;
}

/* Returns when the peer has acknowledged all we sent, so that an ABORT loses nothing on our side. */
static void wait_until_acked(void)
{
	struct sctp_status status;
	socklen_t len;

	for (;;) {
		memset(&status, 0, sizeof status);
		len = sizeof status;
		if (usrsctp_getsockopt(assoc_socket, IPPROTO_SCTP, SCTP_STATUS, &status, &len) < 0)
			return; /* the association is gone: the reader reports why */
		if (status.sstat_unackdata == 0 && status.sstat_penddata == 0)
			return;
		usleep(2000);
	}
}

static void close_association(enum closing how)
{
	static const char reason[] = "interop test";
	struct sctp_sndinfo info = { .snd_flags = SCTP_ABORT };

	if (how == CLOSE_SHUTDOWN) {
		set_flag(&report.local_shutdown);
		if (usrsctp_shutdown(assoc_socket, SHUT_WR) < 0)
			fail("shutdown: %s", strerror(errno));
	} else if (how == CLOSE_ABORT) {
		wait_until_acked();
		set_flag(&report.local_abort);
		if (usrsctp_sendv(assoc_socket, reason, sizeof reason - 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0)
			fail("abort: %s", strerror(errno));
	}
}

/* SCTP_STATUS and an ABORT by send are refused before the association is up. */
static bool wait_until_up(void)
{
	bool up;

	pthread_mutex_lock(&report.lock);
	while (!report.up && !report.lost)
		pthread_cond_wait(&report.changed, &report.lock);
	up = report.up;
	pthread_mutex_unlock(&report.lock);
	return up;
}

/* Waits until as many bytes came back as were sent, or the association ended. */
static void wait_until_echoed(void)
{
	pthread_mutex_lock(&report.lock);
	while (report.bytes_received < report.bytes_sent && !report.shut_down && !report.lost && !report.peer_shutdown)
		pthread_cond_wait(&report.changed, &report.lock);
	pthread_mutex_unlock(&report.lock);
}

static void *sender(void *unused)
{
	uint8_t *message = malloc(MESSAGE_MAX);
	uint64_t sent = 0;
	bool ok = message != NULL && wait_until_up();

	(void)unused;
	for (uint32_t index = 0; ok && sent < opt.bytes; index++) {
		uint32_t len = opt.sizes[index % opt.size_count];
		uint16_t streams = __atomic_load_n(&opt.streams, __ATOMIC_RELAXED);

		do_actions(assoc_socket, index);
		fill_message(message, index, len);
		ok = send_message(message, len, (uint16_t)(index % streams), htonl(index), opt.unordered ? SCTP_UNORDERED : 0,
		                  !is_reliable(index));
		sent += len;
		if (opt.one_at_a_time)
			wait_until_acked();
		if (opt.pace_ms != 0)
			usleep(opt.pace_ms * 1000);
	}
	if (ok && opt.echoed)
		wait_until_echoed();
	if (ok)
		await_reconfigurations();
	if (ok)
		close_association(opt.close);
	free(message);
	return NULL;
}

/* ---- receiving ---- */

static const char *address_text(const struct sockaddr_storage *address, char *text, socklen_t len)
{
	const void *ip = address->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
	                                                : (const void *)&((const struct sockaddr_in *)address)->sin_addr;

	return inet_ntop(address->ss_family, ip, text, len) ? text : "?";
}

static void on_association_change(const struct sctp_assoc_change *change)
{
	static const char *const states[] = { "?", "comm-up", "comm-lost", "restart", "shutdown-complete", "cannot-start" };
	unsigned state = change->sac_state < 6 ? change->sac_state : 0;
	bool carries_abort = change->sac_length > sizeof *change;

	add_event("{\"event\":\"%s\",\"error\":%d,\"streams_out\":%d,\"streams_in\":%d}", states[state], change->sac_error,
	          change->sac_outbound_streams, change->sac_inbound_streams);
	switch (change->sac_state) {
	case SCTP_COMM_UP:
		set_flag(&report.up);
		break;
	case SCTP_COMM_LOST:
	case SCTP_CANT_STR_ASSOC:
		/* usrsctp attaches the ABORT chunk if one was received. */
		if (carries_abort && !report.local_abort)
			set_flag(&report.peer_abort);
		set_flag(&report.lost);
		break;
	case SCTP_SHUTDOWN_COMP:
		set_flag(&report.shut_down);
		break;
	default:
		break;
	}
}

static void on_notification(const union sctp_notification *note)
{
	static const char *const states[] = { "?", "available", "unreachable", "removed", "added", "made-primary", "confirmed" };
	char text[INET6_ADDRSTRLEN];

	if (on_extension(note))
		return;
	switch (note->sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		on_association_change(&note->sn_assoc_change);
		break;
	case SCTP_PEER_ADDR_CHANGE: {
		const struct sctp_paddr_change *change = &note->sn_paddr_change;

		add_event("{\"event\":\"path\",\"address\":\"%s\",\"state\":\"%s\",\"error\":%" PRIu32 "}",
		          address_text(&change->spc_aaddr, text, sizeof text),
		          states[change->spc_state < 7 ? change->spc_state : 0], change->spc_error);
		break;
	}
	case SCTP_SHUTDOWN_EVENT:
		add_event("{\"event\":\"peer-shutdown\"}");
		set_flag(&report.peer_shutdown);
		break;
	case SCTP_REMOTE_ERROR:
		/* RFC 6458 wants network order, usrsctp gives host order. */
		add_event("{\"event\":\"remote-error\",\"cause\":%d}", note->sn_remote_error.sre_error);
		break;
	case SCTP_SEND_FAILED_EVENT:
		add_event("{\"event\":\"send-failed\",\"error\":%" PRIu32 "}", note->sn_send_failed_event.ssfe_error);
		break;
	default:
		add_event("{\"event\":\"other\",\"type\":%d}", note->sn_header.sn_type);
		break;
	}
}

static void on_message(const uint8_t *message, size_t len, const struct sctp_rcvinfo *info)
{
	check_message(message, len, info);
	if (opt.task == TASK_ECHO)
		send_message(message, len, info->rcv_sid, info->rcv_ppid, info->rcv_flags & SCTP_UNORDERED, false);
	if (opt.task != TASK_SEND)
		do_actions(assoc_socket, report.messages_received);
	/* Only this thread receives: no lock to read the count. */
	if (opt.task != TASK_SEND && opt.bytes != 0 && report.bytes_received >= opt.bytes &&
	    report.bytes_received - len < opt.bytes)
		close_association(opt.close);
}

/* The parts of a message that came so far. */
struct parts {
	uint8_t *bytes;
	size_t have;
};

/* Adds a part to its message, if that did not come whole. Parts of messages on other streams may come in between. */
static void on_part(const uint8_t *part, size_t len, const struct sctp_rcvinfo *info, bool is_last)
{
	static struct parts all[STREAMS_MAX + 1][2];
	struct parts *of = &all[info->rcv_sid][(info->rcv_flags & SCTP_UNORDERED) != 0];

	if (is_last && of->have == 0) {
		on_message(part, len, info);
		return;
	}
	if (of->have + len > MESSAGE_MAX) {
		fail("a message is longer than %d bytes", MESSAGE_MAX);
		return;
	}
	if (of->bytes == NULL && (of->bytes = malloc(MESSAGE_MAX)) == NULL) {
		fail("no memory for the parts of a message");
		return;
	}
	memcpy(of->bytes + of->have, part, len);
	of->have += len;
	if (is_last) {
		on_message(of->bytes, of->have, info);
		free(of->bytes);
		*of = (struct parts){ 0 };
	}
}

/* Reads messages and notifications until the association ends. */
static void receive_all(void)
{
	uint8_t *buffer = malloc(MESSAGE_MAX + 1);
	bool ended = buffer == NULL;

	while (!ended) {
		struct sctp_rcvinfo info = { 0 };
		struct sockaddr_storage from;
		socklen_t from_len = sizeof from, info_len = sizeof info;
		unsigned info_type = 0;
		int flags = 0;
		ssize_t n = usrsctp_recvv(assoc_socket, buffer, MESSAGE_MAX + 1, (struct sockaddr *)&from, &from_len,
		                          &info, &info_len, &info_type, &flags);

		if (n <= 0) {
			if (n < 0)
				add_event("{\"event\":\"read-error\",\"text\":\"%s\"}", strerror(errno));
			ended = true;
		} else if (flags & MSG_NOTIFICATION) {
			on_notification((const union sctp_notification *)buffer);
		} else {
			on_part(buffer, n, &info, flags & MSG_EOR);
		}
		if (report.shut_down || report.lost)
			ended = true;
	}
	free(buffer);
}

static void verify_totals(void)
{
	const char *end = closed_by();

	for (uint32_t index = 0; opt.reliable_every != 0 && index < report.index_end; index += opt.reliable_every)
		if (!(seen[index / 8] & (1 << index % 8)))
			fail("message %" PRIu32 " is missing, and has no limit", index);
	if (opt.reliable_every == 0 && report.messages_received != report.index_end)
		fail("%" PRIu64 " messages arrived, but the highest index is %" PRIu32, report.messages_received,
		     report.index_end - 1);
	if (opt.task != TASK_SEND && report.bytes_received < opt.bytes)
		fail("%" PRIu64 " of %" PRIu64 " bytes arrived", report.bytes_received, opt.bytes);
	if (opt.task == TASK_SEND && opt.echoed && report.bytes_received != report.bytes_sent)
		fail("%" PRIu64 " of %" PRIu64 " bytes came back", report.bytes_received, report.bytes_sent);
	if (strcmp(end, "local-failure") == 0 || strcmp(end, "open") == 0)
		fail("the association was lost, and neither side closed it");
	if (opt.expect_close == CLOSE_SHUTDOWN && strcmp(end, "peer-shutdown") != 0)
		fail("expected the peer to shut down, but: %s", end);
	if (opt.expect_close == CLOSE_ABORT && strcmp(end, "peer-abort") != 0)
		fail("expected the peer to abort, but: %s", end);
	if (opt.expect_close == CLOSE_UNSET && opt.close != CLOSE_ABORT && strcmp(end, "peer-abort") == 0)
		fail("the peer aborted");
}

/* ---- setting up ---- */

static void set_option(struct socket *so, int name, const void *value, socklen_t len, const char *what)
{
	if (usrsctp_setsockopt(so, IPPROTO_SCTP, name, value, len) < 0)
		fail("set %s: %s", what, strerror(errno));
}

static void configure(struct socket *so)
{
	static const uint16_t events[] = { SCTP_ASSOC_CHANGE,        SCTP_PEER_ADDR_CHANGE,  SCTP_REMOTE_ERROR,
		                           SCTP_SHUTDOWN_EVENT,      SCTP_SEND_FAILED_EVENT, SCTP_STREAM_RESET_EVENT,
		                           SCTP_STREAM_CHANGE_EVENT, SCTP_ASSOC_RESET_EVENT };
	struct sctp_initmsg init = { .sinit_num_ostreams = opt.streams, .sinit_max_instreams = STREAMS_MAX };
	struct sctp_paddrparams paddr = { .spp_hbinterval = opt.heartbeat_ms, .spp_pathmaxrxt = (uint16_t)opt.path_max_retrans };
	struct sctp_rtoinfo rto = { .srto_initial = opt.rto_min_ms * 2, .srto_min = opt.rto_min_ms };
	struct sctp_udpencaps encaps = { .sue_port = htons(opt.remote_udp_port) };
	struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1 };
	struct sctp_assoc_value interleaving = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1 };
	const int between_streams = 2; /* RFC 6458 §8.1.20: parts of messages on several streams alternate */
	struct sctp_assoc_value reconfiguration = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = SCTP_ENABLE_VALUE_MASK };
	struct sctp_sack_info sack = { .sack_delay = opt.sack_delay_ms };
	/* The default of 256 KiB limits the message size. */
	const int on = 1, off = 0, send_buffer = opt.send_buffer != 0 ? (int)opt.send_buffer : 2 * MESSAGE_MAX;

	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
		event.se_type = events[i];
		set_option(so, SCTP_EVENT, &event, sizeof event, "event");
	}
	set_option(so, SCTP_RECVRCVINFO, &on, sizeof on, "receive information");
	set_option(so, SCTP_NODELAY, &on, sizeof on, "no delay");
	set_option(so, SCTP_INITMSG, &init, sizeof init, "streams");
	if (authenticate(so) < 0)
		fail("set authentication: %s", strerror(errno));
	if (usrsctp_setsockopt(so, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer) < 0)
		fail("set send buffer: %s", strerror(errno));
	if (opt.interleave) {
		set_option(so, SCTP_FRAGMENT_INTERLEAVE, &between_streams, sizeof between_streams, "interleaved parts");
		set_option(so, SCTP_INTERLEAVING_SUPPORTED, &interleaving, sizeof interleaving, "interleaving");
	}
	if (opt.reconfigure)
		set_option(so, SCTP_ENABLE_STREAM_RESET, &reconfiguration, sizeof reconfiguration, "reconfiguration");
	if (opt.sack_delay_ms != 0)
		set_option(so, SCTP_DELAYED_SACK, &sack, sizeof sack, "SACK delay");
	if (opt.local.any_v6)
		set_option(so, SCTP_I_WANT_MAPPED_V4_ADDR, &off, sizeof off, "plain IPv4 addresses");
	if (opt.heartbeat_ms != 0)
		paddr.spp_flags = SPP_HB_ENABLE;
	if (paddr.spp_flags != 0 || opt.path_max_retrans != 0)
		set_option(so, SCTP_PEER_ADDR_PARAMS, &paddr, sizeof paddr, "path parameters");
	if (opt.rto_min_ms != 0)
		set_option(so, SCTP_RTOINFO, &rto, sizeof rto, "RTO");
	if (opt.remote_udp_port != 0)
		set_option(so, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof encaps, "encapsulation port");
}

/* Copies the addresses back to back, as bindx and connectx want them, with `port` in each. */
static void pack_addresses(const struct addresses *from, uint16_t port, uint8_t *packed)
{
	for (int i = 0; i < from->count; i++) {
		struct sockaddr_storage address = from->list[i];
		size_t len = address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

		if (address.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&address)->sin6_port = htons(port);
		else
			((struct sockaddr_in *)&address)->sin_port = htons(port);
		memcpy(packed, &address, len);
		packed += len;
	}
}

/* Listens on `so` until one association is accepted; NULL: it failed. */
static struct socket *accept_one(struct socket *so)
{
	struct socket *accepted;

	if (usrsctp_listen(so, 1) < 0) {
		fail("listen: %s", strerror(errno));
		return NULL;
	}
	if (opt.json) {
		printf("{\"event\":\"listening\",\"udp_port\":%d,\"sctp_port\":%d}\n", opt.udp_port, opt.sctp_port);
		fflush(stdout);
	}
	accepted = usrsctp_accept(so, NULL, NULL);
	if (accepted == NULL)
		fail("accept: %s", strerror(errno));
	return accepted;
}

/* Binds and establishes; on success `assoc_socket` is the association. */
static bool establish(void)
{
	uint8_t packed[ADDRESSES_MAX * sizeof(struct sockaddr_in6)];
	bool v6 = opt.local.any_v6 || opt.remote.any_v6;
	struct socket *so = usrsctp_socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	sctp_assoc_t id;

	if (so == NULL) {
		fail("socket: %s", strerror(errno));
		return false;
	}
	configure(so);
	pack_addresses(&opt.local, opt.sctp_port, packed);
	if (usrsctp_bindx(so, (struct sockaddr *)packed, opt.local.count, SCTP_BINDX_ADD_ADDR) < 0) {
		fail("bindx: %s", strerror(errno));
	} else if (opt.listen) {
		assoc_socket = accept_one(so);
	} else {
		pack_addresses(&opt.remote, opt.remote_sctp_port, packed);
		if (usrsctp_connectx(so, (struct sockaddr *)packed, opt.remote.count, &id) < 0)
			fail("connectx: %s", strerror(errno));
		else
			assoc_socket = so;
	}
	if (assoc_socket != so && !opt.keep_listening)
		usrsctp_close(so);
	return assoc_socket != NULL;
}

static void *run(void *unused)
{
	pthread_t sending;
	bool sends = opt.task == TASK_SEND;

	(void)unused;
	if (establish()) {
		if (sends)
			sends = pthread_create(&sending, NULL, sender, NULL) == 0;
		receive_all();
		if (sends)
			pthread_join(sending, NULL);
		verify_totals();
		usrsctp_close(assoc_socket);
	}
	set_flag(&report.done);
	return NULL;
}

/* usrsctp as root would also open raw SCTP sockets and answer packets that are none of its business. Over IP itself it
 * needs them, in a network namespace of its own. */
static void drop_raw_sockets(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) == 0) {
		data[0].effective &= ~(1u << CAP_NET_RAW);
		syscall(SYS_capset, &header, data);
	}
}

/* usrsctp keeps silent if it cannot bind its UDP port, so look first. */
static bool udp_port_free(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(opt.udp_port) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0;

	if (fd >= 0)
		close(fd);
	return is_free;
}

int main(int argc, char **argv)
{
	pthread_t running;
	int exit_code;

	parse_options(argc, argv);
	report_init();
	if (opt.udp_port != 0 && !udp_port_free()) {
		fail("UDP port %d: %s", opt.udp_port, strerror(errno));
		return print_report(false);
	}
	if (opt.udp_port != 0)
		drop_raw_sockets();
	usrsctp_init(opt.udp_port, NULL, NULL);
	/* By default usrsctp does not verify the CRC32c of packets it takes for local ones. */
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_cmt_on_off((uint32_t)opt.cmt);
	usrsctp_sysctl_set_sctp_cmt_use_dac((uint32_t)opt.cmt);
	usrsctp_sysctl_set_sctp_nrsack_enable(opt.nr_sack);
	if (opt.receive_buffer != 0)
		usrsctp_sysctl_set_sctp_recvspace(opt.receive_buffer);

	if (pthread_create(&running, NULL, run, NULL) != 0)
		return EXIT_FAILED;
	if (!wait_flag(&report.done, (uint64_t)opt.timeout_s * 1000)) {
		pthread_mutex_lock(&report.lock);
		exit_code = print_report(true);
		_exit(exit_code); /* the other threads may hang anywhere */
	}
	pthread_join(running, NULL);
	/* If our SHUTDOWN COMPLETE was lost, the stack answers the peer's next SHUTDOWN ACK. */
	usleep(opt.linger_ms * 1000);
	for (int ms = 0; usrsctp_finish() != 0 && ms < FINISH_MS; ms += 10)
		usleep(10000);
	exit_code = print_report(false);
	fflush(stdout);
	_exit(exit_code);
}
