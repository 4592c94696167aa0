/* usrsctp_peer's command line. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usrsctp.h>

#include "peer.h"

struct options opt = { .streams = 1, .sizes = { 1000 }, .size_count = 1, .sctp_port = 5001, .timeout_s = 30 };

static void usage(const char *problem)
{
	fprintf(stderr,
	        "usrsctp_peer: %s\n"
	        "usage: usrsctp_peer (listen|connect) OPTIONS (send BYTES | receive [BYTES] | echo [BYTES])\n"
	        "  --udp-port N          our encapsulation port (required); 0: none, over IP itself, on both sides\n"
	        "  --remote-udp-port N   the peer's encapsulation port (connect)\n"
	        "  --local A[,B...]      our addresses (required)\n"
	        "  --remote A[,B...]     the peer's addresses (connect)\n"
	        "  --sctp-port N         our SCTP port (5001)\n"
	        "  --remote-sctp-port N  the peer's SCTP port (as ours)\n"
	        "  --messages N[,N...]   message sizes in bytes, in turn (1000)\n"
	        "  --seed N              pattern seed, 0 to 255 (0)\n"
	        "  --streams N           outbound streams (1; echo: 16)\n"
	        "  --unordered           send unordered messages\n"
	        "  --echoed              send: close only when all bytes came back\n"
	        "  --close HOW           shutdown or abort: what we do after BYTES (send: shutdown)\n"
	        "  --expect-close HOW    shutdown or abort: what the peer must do; we then do not close\n"
	        "  --cmt 0|1             concurrent multipath transfer, with its delayed ack (0)\n"
	        "  --nr-sack             offer non-renegable SACKs (chunk type 16)\n"
	        "  --interleave          offer message interleaving (I-DATA, RFC 8260)\n"
	        "  --limit HOW=N         send: messages are given up by ttl (ms), rtx (retransmissions) or buf (priority)\n"
	        "  --reliable-every N    but not those whose index N divides; receive: the others may be missing\n"
	        "  --reconfigure         let the peer reset and add streams, and check the numbers of messages\n"
	        "  --do N:ACTION[=N]     after N messages: reset-out, reset-in (all streams, or that one), add-out=N, add-in=N,\n"
	        "                        reset-association, add-address=A, delete-address=A, prefer-address=A (RFC 5061, IPv4);\n"
	        "                        can be repeated\n"
	        "  --await N             send: do not close before N reconfigurations were reported, of either side; each stream\n"
	        "                        that is reset counts (0)\n"
	        "  --auth-chunk TYPE     take chunks of this type only if they are authenticated (RFC 4895); can be repeated\n"
	        "  --auth-key N=TEXT     authenticate with this key\n"
	        "  --sack-immediately    ask for the SACK of each message (I bit)\n"
	        "  --keep-listening      listen: keep the listening socket, by which a peer is found that asks from a new address\n"
	        "  --one-at-a-time       send: wait for each message's SACK\n"
	        "  --sack-delay-ms N  --send-buffer BYTES\n"
	        "  --heartbeat-ms N  --rto-min-ms N  --path-max-retrans N\n"
	        "  --receive-buffer N    bytes (131072)\n"
	        "  --pace-ms N           send: pause after each message (0)\n"
	        "  --linger-ms N         keep answering after the association ended (0)\n"
	        "  --timeout SECONDS     give up (30)\n"
	        "  --json                results as JSON lines\n"
	        "exit: 0 ok, 1 failed, 2 usage, 3 timed out\n",
	        problem);
	exit(EXIT_USAGE);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max, const char *what)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < min || value > max)
		usage(what);
	return value;
}

static void parse_addresses(char *text, struct addresses *into)
{
	char *rest = NULL;

	for (char *item = strtok_r(text, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
		struct sockaddr_storage *address = &into->list[into->count];

		if (into->count == ADDRESSES_MAX)
			usage("too many addresses");
		if (inet_pton(AF_INET, item, &((struct sockaddr_in *)address)->sin_addr) == 1) {
			address->ss_family = AF_INET;
		} else if (inet_pton(AF_INET6, item, &((struct sockaddr_in6 *)address)->sin6_addr) == 1) {
			address->ss_family = AF_INET6;
			into->any_v6 = true;
		} else {
			usage("addresses are numeric, IPv4 or IPv6");
		}
		into->count++;
	}
}

static void parse_sizes(char *text)
{
	char *rest = NULL;

	opt.size_count = 0;
	for (char *item = strtok_r(text, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
		if (opt.size_count == SIZES_MAX)
			usage("too many message sizes");
		opt.sizes[opt.size_count++] = (uint32_t)number(item, 1, MESSAGE_MAX, "message sizes are 1 to 1048576");
	}
	if (opt.size_count == 0)
		usage("--messages needs a size");
}

static enum closing parse_closing(const char *text)
{
	if (strcmp(text, "shutdown") == 0)
		return CLOSE_SHUTDOWN;
	if (strcmp(text, "abort") != 0)
		usage("a close is shutdown or abort");
	return CLOSE_ABORT;
}

static void parse_limit(const char *text)
{
	static const struct { const char *name; int policy; } policies[] = {
		{ "ttl=", SCTP_PR_SCTP_TTL }, { "rtx=", SCTP_PR_SCTP_RTX }, { "buf=", SCTP_PR_SCTP_BUF }
	};

	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		if (strncmp(text, policies[i].name, 4) == 0) {
			opt.limit = policies[i].policy;
			opt.limit_value = (uint32_t)number(text + 4, 0, 1000000, "bad --limit");
			return;
		}
	}
	usage("a limit is ttl=N, rtx=N or buf=N");
}

static void parse_action(char *text)
{
	static const struct { const char *name; enum action_kind kind; } kinds[] = {
		{ "reset-out", ACTION_RESET_OUT }, { "reset-in", ACTION_RESET_IN }, { "add-out", ACTION_ADD_OUT },
		{ "add-in", ACTION_ADD_IN }, { "reset-association", ACTION_RESET_ASSOCIATION },
		{ "add-address", ACTION_ADD_ADDRESS }, { "delete-address", ACTION_DELETE_ADDRESS },
		{ "prefer-address", ACTION_PREFER_ADDRESS }
	};
	char *rest = NULL, *at = strtok_r(text, ":", &rest), *name = strtok_r(NULL, "=", &rest), *value = strtok_r(NULL, "", &rest);
	struct action *action = &opt.actions[opt.action_count];

	if (opt.action_count++ == ACTIONS_MAX)
		usage("too many actions");
	for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(name, kinds[i].name) == 0)
			action->kind = kinds[i].kind;
	if (action->kind == ACTION_NONE)
		usage("unknown action");
	action->at = number(at, 0, INDEX_MAX, "bad --do");
	if (action->kind >= ACTION_ADD_ADDRESS) {
		if (value == NULL || inet_pton(AF_INET, value, &action->address) != 1)
			usage("addresses of actions are numeric, IPv4");
		return;
	}
	action->has_value = value != NULL;
	if (action->has_value)
		action->value = (uint16_t)number(value, 0, STREAMS_MAX, "bad --do");
}

static void parse_auth_key(char *text)
{
	char *rest = NULL, *at = strtok_r(text, "=", &rest), *key = strtok_r(NULL, "", &rest);

	if (at == NULL || key == NULL || strlen(key) > AUTH_KEY_MAX)
		usage("a key is N=TEXT, with at most 64 bytes");
	opt.auth_key_number = (uint16_t)number(at, 0, 65535, "bad --auth-key");
	strcpy(opt.auth_key, key);
}

static void parse_auth_chunk(const char *text)
{
	if (opt.auth_chunk_count == AUTH_CHUNKS_MAX)
		usage("too many chunk types");
	opt.auth_chunks[opt.auth_chunk_count++] = (uint8_t)number(text, 0, 255, "bad --auth-chunk");
}

static bool parse_flag(const char *name)
{
	if (strcmp(name, "--unordered") == 0)
		opt.unordered = true;
	else if (strcmp(name, "--echoed") == 0)
		opt.echoed = true;
	else if (strcmp(name, "--nr-sack") == 0)
		opt.nr_sack = true;
	else if (strcmp(name, "--interleave") == 0)
		opt.interleave = true;
	else if (strcmp(name, "--reconfigure") == 0)
		opt.reconfigure = true;
	else if (strcmp(name, "--sack-immediately") == 0)
		opt.sack_immediately = true;
	else if (strcmp(name, "--one-at-a-time") == 0)
		opt.one_at_a_time = true;
	else if (strcmp(name, "--keep-listening") == 0)
		opt.keep_listening = true;
	else if (strcmp(name, "--json") == 0)
		opt.json = true;
	else
		return false;
	return true;
}

static void parse_option(const char *name, char *value)
{
	if (value == NULL)
		usage("an option needs a value");
	if (strcmp(name, "--udp-port") == 0) {
		opt.udp_port = (uint16_t)number(value, 0, 65535, "bad --udp-port");
		opt.has_udp_port = true;
	} else if (strcmp(name, "--remote-udp-port") == 0)
		opt.remote_udp_port = (uint16_t)number(value, 0, 65535, "bad --remote-udp-port");
	else if (strcmp(name, "--sctp-port") == 0)
		opt.sctp_port = (uint16_t)number(value, 1, 65535, "bad --sctp-port");
	else if (strcmp(name, "--remote-sctp-port") == 0)
		opt.remote_sctp_port = (uint16_t)number(value, 1, 65535, "bad --remote-sctp-port");
	else if (strcmp(name, "--local") == 0)
		parse_addresses(value, &opt.local);
	else if (strcmp(name, "--remote") == 0)
		parse_addresses(value, &opt.remote);
	else if (strcmp(name, "--messages") == 0)
		parse_sizes(value);
	else if (strcmp(name, "--seed") == 0)
		opt.seed = (uint8_t)number(value, 0, 255, "bad --seed");
	else if (strcmp(name, "--streams") == 0)
		opt.streams = (uint16_t)number(value, 1, STREAMS_MAX, "bad --streams");
	else if (strcmp(name, "--close") == 0)
		opt.close = parse_closing(value);
	else if (strcmp(name, "--expect-close") == 0)
		opt.expect_close = parse_closing(value);
	else if (strcmp(name, "--cmt") == 0)
		opt.cmt = (int)number(value, 0, 1, "--cmt is 0 or 1");
	else if (strcmp(name, "--heartbeat-ms") == 0)
		opt.heartbeat_ms = (uint32_t)number(value, 1, 3600000, "bad --heartbeat-ms");
	else if (strcmp(name, "--rto-min-ms") == 0)
		opt.rto_min_ms = (uint32_t)number(value, 1, 60000, "bad --rto-min-ms");
	else if (strcmp(name, "--path-max-retrans") == 0)
		opt.path_max_retrans = (uint32_t)number(value, 1, 255, "bad --path-max-retrans");
	else if (strcmp(name, "--receive-buffer") == 0)
		opt.receive_buffer = (uint32_t)number(value, 1500, 1 << 30, "bad --receive-buffer");
	else if (strcmp(name, "--send-buffer") == 0)
		opt.send_buffer = (uint32_t)number(value, 1500, 1 << 30, "bad --send-buffer");
	else if (strcmp(name, "--sack-delay-ms") == 0)
		opt.sack_delay_ms = (uint32_t)number(value, 1, 500, "bad --sack-delay-ms");
	else if (strcmp(name, "--auth-chunk") == 0)
		parse_auth_chunk(value);
	else if (strcmp(name, "--auth-key") == 0)
		parse_auth_key(value);
	else if (strcmp(name, "--limit") == 0)
		parse_limit(value);
	else if (strcmp(name, "--reliable-every") == 0)
		opt.reliable_every = (uint32_t)number(value, 1, INDEX_MAX, "bad --reliable-every");
	else if (strcmp(name, "--do") == 0)
		parse_action(value);
	else if (strcmp(name, "--await") == 0)
		opt.await = (uint32_t)number(value, 0, 1000, "bad --await");
	else if (strcmp(name, "--pace-ms") == 0)
		opt.pace_ms = (uint32_t)number(value, 0, 10000, "bad --pace-ms");
	else if (strcmp(name, "--linger-ms") == 0)
		opt.linger_ms = (uint32_t)number(value, 0, 60000, "bad --linger-ms");
	else if (strcmp(name, "--timeout") == 0)
		opt.timeout_s = (uint32_t)number(value, 1, 3600, "bad --timeout");
	else
		usage(name);
}

static void parse_task(const char *name, const char *bytes)
{
	static const struct { const char *name; enum task task; } tasks[] = {
		{ "send", TASK_SEND }, { "receive", TASK_RECEIVE }, { "echo", TASK_ECHO }
	};

	for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
		if (strcmp(name, tasks[i].name) == 0)
			opt.task = tasks[i].task;
	if (opt.task == TASK_NONE)
		usage(name);
	if (bytes != NULL)
		opt.bytes = number(bytes, 1, (uint64_t)1 << 40, "bad number of bytes");
}

/* True if something is to be done that both sides must have RFC 6525 for. */
static bool needs_reconfiguration(void)
{
	for (int i = 0; i < opt.action_count; i++)
		if (opt.actions[i].kind < ACTION_ADD_ADDRESS)
			return true;
	return false;
}

void parse_options(int argc, char **argv)
{
	bool streams_given = false;
	int i = 2;

	if (argc < 2 || (strcmp(argv[1], "listen") != 0 && strcmp(argv[1], "connect") != 0))
		usage("the first argument is listen or connect");
	opt.listen = argv[1][0] == 'l';
	while (i < argc && strncmp(argv[i], "--", 2) == 0) {
		if (parse_flag(argv[i])) {
			i++;
			continue;
		}
		streams_given |= strcmp(argv[i], "--streams") == 0;
		parse_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
		i += 2;
	}
	if (i >= argc || i + 2 < argc)
		usage("the last arguments are send BYTES, receive [BYTES] or echo [BYTES]");
	parse_task(argv[i], i + 1 < argc ? argv[i + 1] : NULL);

	if (!opt.has_udp_port || opt.local.count == 0)
		usage("--udp-port and --local are required");
	if (!opt.listen && (opt.remote.count == 0 || (opt.remote_udp_port == 0) != (opt.udp_port == 0)))
		usage("connect needs --remote and --remote-udp-port, which is 0 if --udp-port is");
	if (opt.task == TASK_SEND && opt.bytes == 0)
		usage("send needs a number of bytes");
	if (opt.limit != SCTP_PR_SCTP_NONE && opt.reliable_every == 0)
		usage("--limit needs --reliable-every");
	if (needs_reconfiguration() && !opt.reconfigure)
		usage("--do needs --reconfigure");
	if (opt.close != CLOSE_UNSET && opt.expect_close != CLOSE_UNSET)
		usage("--close and --expect-close exclude each other");
	if (opt.close != CLOSE_UNSET && opt.bytes == 0)
		usage("--close needs a number of bytes to close after");
	if (opt.task == TASK_SEND && opt.close == CLOSE_UNSET && opt.expect_close == CLOSE_UNSET)
		opt.close = CLOSE_SHUTDOWN;
	if (opt.task == TASK_ECHO && !streams_given)
		opt.streams = 16;
	if (opt.remote_sctp_port == 0)
		opt.remote_sctp_port = opt.sctp_port;
}
