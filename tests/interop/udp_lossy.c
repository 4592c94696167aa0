/*
 * udp_lossy: a UDP relay that loses, duplicates, reorders and delays datagrams, the same way for the same seed and input.
 *
 *     udp_lossy LISTEN_IP:PORT TARGET_IP:PORT [options]
 *
 * Datagrams from the last client heard go to the target, from --source (the listening address if not given); what the
 * target answers goes back to that client. IPv4 only. It ends by itself (--lifetime) or on SIGTERM, and then prints one
 * JSON line with its counts. When ready it prints {"event":"listening"}.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MAX = 1024, DATAGRAM_MAX = 65536, TO_TARGET = 0, TO_CLIENT = 1 };

struct held {
	uint64_t due_ns;
	uint64_t order;             /* of arrival; ties in due_ns leave in it */
	uint8_t *data;
	size_t len;
	int way;
};

static struct {
	uint32_t drop, duplicate, reorder; /* permille of the datagrams of each direction */
	uint32_t delay_ms;          /* added to every datagram */
	uint32_t reorder_ms;        /* added to a reordered one */
	uint32_t outage_at_ms, outage_for_ms; /* from the first datagram; both directions */
	uint32_t lifetime_s;
	uint64_t seed;
	struct sockaddr_in listen, target, source;
} opt = { .reorder_ms = 5, .lifetime_s = 60, .seed = 1 };

static struct { uint64_t received[2], forwarded[2], dropped[2], duplicated, reordered, overflowed, outage, errors; } count;
static struct held queue[QUEUE_MAX];
static int queued;
static uint64_t arrivals, first_ns;
static int sockets[2];              /* [TO_TARGET] sends to the target, [TO_CLIENT] to the client */
static struct sockaddr_in client;
static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One generator for each direction (SplitMix64): datagrams of one do not shift the decisions on the other. */
static bool happens(int way, uint32_t permille)
{
	static uint64_t state[2];
	uint64_t z;

	if (state[way] == 0)
		state[way] = opt.seed * 2 + (uint64_t)way + 1;
	z = state[way] += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % 1000 < permille;
}

static void forward(int way, const uint8_t *data, size_t len)
{
	const struct sockaddr_in *to = way == TO_TARGET ? &opt.target : &client;

	if (sendto(sockets[way], data, len, 0, (const struct sockaddr *)to, sizeof *to) == (ssize_t)len)
		count.forwarded[way]++;
	else
		count.errors++;
}

/* Sends now, or keeps a copy until it is due. */
static void schedule(int way, const uint8_t *data, size_t len, uint64_t delay_ms)
{
	if (delay_ms == 0) {
		forward(way, data, len);
	} else if (queued == QUEUE_MAX) {
		count.overflowed++;
	} else {
		struct held *held = &queue[queued];

		held->data = malloc(len);
		if (held->data == NULL) {
			count.overflowed++;
			return;
		}
		memcpy(held->data, data, len);
		held->len = len;
		held->way = way;
		held->order = arrivals;
		held->due_ns = now_ns() + delay_ms * 1000000;
		queued++;
	}
}

static void handle(int way, const uint8_t *data, size_t len)
{
	/* Always the same number of draws, so that one option does not shift another's decisions. */
	bool drop = happens(way, opt.drop), duplicate = happens(way, opt.duplicate), reorder = happens(way, opt.reorder);
	uint64_t now = now_ns(), since_first_ms;

	if (first_ns == 0)
		first_ns = now;
	since_first_ms = (now - first_ns) / 1000000;
	count.received[way]++;
	arrivals++;
	if (opt.outage_for_ms != 0 && since_first_ms >= opt.outage_at_ms &&
	    since_first_ms - opt.outage_at_ms < opt.outage_for_ms) {
		count.outage++;
		return;
	}
	if (drop) {
		count.dropped[way]++;
		return;
	}
	if (reorder)
		count.reordered++;
	schedule(way, data, len, opt.delay_ms + (reorder ? opt.reorder_ms : 0));
	if (duplicate) {
		count.duplicated++;
		schedule(way, data, len, opt.delay_ms);
	}
}

/* The held datagram that leaves next, or -1. */
static int next_held(void)
{
	int best = -1;

	for (int i = 0; i < queued; i++)
		if (best < 0 || queue[i].due_ns < queue[best].due_ns ||
		    (queue[i].due_ns == queue[best].due_ns && queue[i].order < queue[best].order))
			best = i;
	return best;
}

/* Sends what is due; returns the milliseconds until the next is, at most 100. */
static int send_due(void)
{
	int i;

	while ((i = next_held()) >= 0) {
		uint64_t now = now_ns();

		if (queue[i].due_ns > now) {
			uint64_t wait_ms = (queue[i].due_ns - now + 999999) / 1000000;

			return wait_ms < 100 ? (int)wait_ms : 100;
		}
		forward(queue[i].way, queue[i].data, queue[i].len);
		free(queue[i].data);
		queue[i] = queue[--queued];
	}
	return 100;
}

static void receive(int way)
{
	static uint8_t data[DATAGRAM_MAX];
	struct sockaddr_in from;
	socklen_t from_len = sizeof from;
	/* What goes to the target comes in on the client's socket, and the other way round. */
	ssize_t len = recvfrom(sockets[!way], data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);

	if (len < 0)
		return;
	if (way == TO_TARGET)
		client = from;
	else if (client.sin_port == 0)
		return;
	handle(way, data, (size_t)len);
}

static void usage(const char *problem)
{
	fprintf(stderr,
	        "udp_lossy: %s\n"
	        "usage: udp_lossy LISTEN_IP:PORT TARGET_IP:PORT [--drop PERMILLE] [--duplicate PERMILLE] [--reorder PERMILLE]\n"
	        "       [--delay MS] [--reorder-delay MS] [--outage-at MS --outage-for MS] [--source IP] [--seed N]\n"
	        "       [--lifetime SECONDS]\n",
	        problem);
	exit(2);
}

static uint32_t number(const char *text, uint32_t max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || value > max)
		usage(text);
	return (uint32_t)value;
}

static void parse_endpoint(char *text, struct sockaddr_in *into)
{
	char *colon = strchr(text, ':');

	if (colon == NULL)
		usage(text);
	*colon = '\0';
	into->sin_family = AF_INET;
	into->sin_port = htons((uint16_t)number(colon + 1, 65535));
	if (inet_pton(AF_INET, text, &into->sin_addr) != 1)
		usage(text);
}

static void parse(int argc, char **argv)
{
	static const struct { const char *name; uint32_t *into; uint32_t max; } numbers[] = {
		{ "--drop", &opt.drop, 1000 },          { "--duplicate", &opt.duplicate, 1000 },
		{ "--reorder", &opt.reorder, 1000 },    { "--delay", &opt.delay_ms, 10000 },
		{ "--reorder-delay", &opt.reorder_ms, 10000 }, { "--outage-at", &opt.outage_at_ms, 3600000 },
		{ "--outage-for", &opt.outage_for_ms, 3600000 }, { "--lifetime", &opt.lifetime_s, 3600 },
	};

	if (argc < 3 || argc % 2 == 0)
		usage("two addresses, then options with a value each");
	parse_endpoint(argv[1], &opt.listen);
	parse_endpoint(argv[2], &opt.target);
	opt.source = opt.listen;
	opt.source.sin_port = 0;
	for (int i = 3; i < argc; i += 2) {
		bool known = false;

		for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
			if (strcmp(argv[i], numbers[k].name) == 0) {
				*numbers[k].into = number(argv[i + 1], numbers[k].max);
				known = true;
			}
		}
		if (strcmp(argv[i], "--seed") == 0)
			opt.seed = number(argv[i + 1], UINT32_MAX);
		else if (strcmp(argv[i], "--source") == 0 && inet_pton(AF_INET, argv[i + 1], &opt.source.sin_addr) == 1)
			continue;
		else if (!known)
			usage(argv[i]);
	}
}

static int open_socket(const struct sockaddr_in *at)
{
	const int buffer = 4 << 20;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)at, sizeof *at) < 0) {
		perror("udp_lossy: bind");
		exit(1);
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	return fd;
}

int main(int argc, char **argv)
{
	struct sigaction on_stop = { .sa_handler = stop };
	struct pollfd polled[2];
	uint64_t end_ns;

	parse(argc, argv);
	sockets[TO_CLIENT] = open_socket(&opt.listen);
	sockets[TO_TARGET] = open_socket(&opt.source);
	sigaction(SIGTERM, &on_stop, NULL);
	sigaction(SIGINT, &on_stop, NULL);
	printf("{\"event\":\"listening\"}\n");
	fflush(stdout);

	end_ns = now_ns() + (uint64_t)opt.lifetime_s * 1000000000u;
	while (!stopped && now_ns() < end_ns) {
		int wait_ms = send_due();

		for (int way = 0; way < 2; way++)
			polled[way] = (struct pollfd){ .fd = sockets[!way], .events = POLLIN };
		if (poll(polled, 2, wait_ms) < 0)
			continue;
		for (int way = 0; way < 2; way++)
			if (polled[way].revents != 0)
				receive(way);
	}
	printf("{\"to_target\":{\"received\":%ju,\"forwarded\":%ju,\"dropped\":%ju},"
	       "\"to_client\":{\"received\":%ju,\"forwarded\":%ju,\"dropped\":%ju},"
	       "\"duplicated\":%ju,\"reordered\":%ju,\"outage\":%ju,\"overflowed\":%ju,\"errors\":%ju}\n",
	       count.received[0], count.forwarded[0], count.dropped[0], count.received[1], count.forwarded[1], count.dropped[1],
	       count.duplicated, count.reordered, count.outage, count.overflowed, count.errors);
	return 0;
}
