/* usrsctp_peer's extensions: messages with limits (RFC 3758, RFC 7496), streams that are reset and added (RFC 6525), AUTH (RFC 4895),
 * addresses that come and go (RFC 5061). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

#include "peer.h"

enum { TRIES_MAX = 10000, TRY_MS = 2 };

/* The numbers (SSN, or the lower half of the MID) that ordered messages of a stream have. */
struct numbers {
	bool was_reset;
	uint16_t next;
};
static struct numbers numbers[STREAMS_MAX + 1];

bool is_reliable(uint32_t index)
{
	return opt.reliable_every == 0 || index % opt.reliable_every == 0;
}

void check_number(const struct sctp_rcvinfo *info)
{
	struct numbers *stream = &numbers[info->rcv_sid];
	uint16_t ahead = (uint16_t)(info->rcv_ssn - stream->next);
	bool may_skip = opt.reliable_every != 0;

	if ((!opt.reconfigure && opt.reliable_every == 0) || (info->rcv_flags & SCTP_UNORDERED))
		return;
	if (may_skip ? ahead >= 0x8000 : ahead != 0)
		fail("stream %d has number %d where %d should follow", info->rcv_sid, info->rcv_ssn, stream->next);
	if (stream->was_reset) {
		pthread_mutex_lock(&report.lock);
		report.number_restarts++;
		pthread_mutex_unlock(&report.lock);
	}
	*stream = (struct numbers){ .next = (uint16_t)(info->rcv_ssn + 1) };
}

static void count_reconfigurations(int count)
{
	pthread_mutex_lock(&report.lock);
	report.reconfigurations += (uint32_t)count;
	pthread_cond_broadcast(&report.changed);
	pthread_mutex_unlock(&report.lock);
}

static void on_streams_reset(const struct sctp_stream_reset_event *event)
{
	int count = (int)((event->strreset_length - sizeof *event) / sizeof event->strreset_stream_list[0]);
	bool incoming = event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN;
	bool refused = event->strreset_flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED);

	add_event("{\"event\":\"streams-reset\",\"direction\":\"%s\",\"refused\":%s,\"streams\":%d}", incoming ? "in" : "out",
	          refused ? "true" : "false", count);
	for (int i = 0; incoming && !refused && i < (count == 0 ? STREAMS_MAX + 1 : count); i++) {
		struct numbers *stream = &numbers[count == 0 ? i : event->strreset_stream_list[i]];

		if (stream->next != 0)
			*stream = (struct numbers){ .was_reset = true };
	}
	count_reconfigurations(count == 0 ? __atomic_load_n(&opt.streams, __ATOMIC_RELAXED) : count);
}

static void on_streams_changed(const struct sctp_stream_change_event *event)
{
	bool refused = event->strchange_flags & (SCTP_STREAM_CHANGE_DENIED | SCTP_STREAM_CHANGE_FAILED);

	add_event("{\"event\":\"streams-changed\",\"refused\":%s,\"in\":%d,\"out\":%d}", refused ? "true" : "false",
	          event->strchange_instrms, event->strchange_outstrms);
	__atomic_store_n(&opt.streams, event->strchange_outstrms, __ATOMIC_RELAXED);
	count_reconfigurations(1);
}

bool on_extension(const union sctp_notification *note)
{
	switch (note->sn_header.sn_type) {
	case SCTP_STREAM_RESET_EVENT:
		on_streams_reset(&note->sn_strreset_event);
		return true;
	case SCTP_STREAM_CHANGE_EVENT:
		on_streams_changed(&note->sn_strchange_event);
		return true;
	case SCTP_ASSOC_RESET_EVENT:
		add_event("{\"event\":\"association-reset\",\"refused\":%s}",
		          note->sn_assocreset_event.assocreset_flags != 0 ? "true" : "false");
		count_reconfigurations(1);
		return true;
	case SCTP_SEND_FAILED_EVENT:
		if (opt.limit == SCTP_PR_SCTP_NONE)
			return false;
		pthread_mutex_lock(&report.lock);
		report.given_up++;
		pthread_mutex_unlock(&report.lock);
		return true;
	default:
		return false;
	}
}

/* Asks for a change of our addresses (RFC 5061). */
static int try_address(struct socket *so, const struct action *action)
{
	struct sctp_setpeerprim preferred = { .sspp_assoc_id = 0 };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(opt.sctp_port), .sin_addr = action->address };

	if (action->kind == ACTION_PREFER_ADDRESS) {
		memcpy(&preferred.sspp_addr, &address, sizeof address);
		return usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &preferred, sizeof preferred);
	}
	return usrsctp_bindx(so, (struct sockaddr *)&address, 1,
	                     action->kind == ACTION_ADD_ADDRESS ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR);
}

static int try_action(struct socket *so, const struct action *action)
{
	uint8_t room[sizeof(struct sctp_reset_streams) + sizeof(uint16_t)] = { 0 };
	struct sctp_reset_streams *reset = (struct sctp_reset_streams *)room;
	struct sctp_add_streams add = { 0 };
	sctp_assoc_t association = 0;

	if (action->kind >= ACTION_ADD_ADDRESS)
		return try_address(so, action);
	switch (action->kind) {
	case ACTION_RESET_IN:
	case ACTION_RESET_OUT:
		reset->srs_flags = action->kind == ACTION_RESET_IN ? SCTP_STREAM_RESET_INCOMING : SCTP_STREAM_RESET_OUTGOING;
		reset->srs_number_streams = action->has_value;
		memcpy(reset->srs_stream_list, &action->value, sizeof action->value);
		return usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_RESET_STREAMS, reset, sizeof room);
	case ACTION_ADD_IN:
	case ACTION_ADD_OUT:
		if (action->kind == ACTION_ADD_IN)
			add.sas_instrms = action->value;
		else
			add.sas_outstrms = action->value;
		return usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_ADD_STREAMS, &add, sizeof add);
	default:
		return usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_RESET_ASSOC, &association, sizeof association);
	}
}

void do_actions(struct socket *so, uint64_t messages)
{
	for (int i = 0; i < opt.action_count; i++) {
		int tries = 0;

		if (opt.actions[i].at != messages)
			continue;
		/* One request is in flight at a time, and an association is reset while no data is. */
		while (try_action(so, &opt.actions[i]) < 0) {
			if ((errno != EALREADY && errno != EBUSY && errno != EAGAIN) || tries++ == TRIES_MAX) {
				fail("action %d: %s", i, strerror(errno));
				return;
			}
			usleep(TRY_MS * 1000);
		}
	}
}

void await_reconfigurations(void)
{
	pthread_mutex_lock(&report.lock);
	while (report.reconfigurations < opt.await && !report.shut_down && !report.lost)
		pthread_cond_wait(&report.changed, &report.lock);
	pthread_mutex_unlock(&report.lock);
}

ssize_t send_with_options(struct socket *so, const void *data, size_t len, const struct sctp_sndinfo *info, bool limited)
{
	struct sctp_sendv_spa spa = { .sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID };
	ssize_t sent;
	int tries = 0;

	spa.sendv_sndinfo = *info;
	if (opt.sack_immediately)
		spa.sendv_sndinfo.snd_flags |= SCTP_SACK_IMMEDIATELY;
	if (limited) {
		spa.sendv_prinfo.pr_policy = (uint16_t)opt.limit;
		spa.sendv_prinfo.pr_value = opt.limit_value;
	}
	/* A stream that is being reset takes no messages meanwhile. */
	do {
		sent = usrsctp_sendv(so, data, len, NULL, 0, &spa, sizeof spa, SCTP_SENDV_SPA, 0);
	} while (sent < 0 && errno == EAGAIN && tries++ < TRIES_MAX && usleep(TRY_MS * 1000) == 0);
	return sent;
}

int authenticate(struct socket *so)
{
	uint8_t room[sizeof(struct sctp_authkey) + AUTH_KEY_MAX] = { 0 };
	struct sctp_authkey *key = (struct sctp_authkey *)room;
	struct sctp_authkeyid active = { .scact_keynumber = opt.auth_key_number };
	size_t len = strlen(opt.auth_key);

	for (int i = 0; i < opt.auth_chunk_count; i++) {
		struct sctp_authchunk chunk = { .sauth_chunk = opt.auth_chunks[i] };

		if (usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &chunk, sizeof chunk) < 0)
			return -1;
	}
	if (len == 0)
		return 0;
	key->sca_keynumber = opt.auth_key_number;
	key->sca_keylength = (uint16_t)len;
	memcpy(key->sca_key, opt.auth_key, len);
	if (usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_AUTH_KEY, key, (socklen_t)(sizeof *key + len)) < 0)
		return -1;
	return usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &active, sizeof active);
}
