/*
 * usrsctp_bulk: a bulk transfer on libusrsctp over UDP encapsulation (RFC 6951), to measure manypath against.
 *
 *     usrsctp_bulk server --udp-port N [--address A] [--verify-crc] [--cmt] [--buffers BYTES]
 *     usrsctp_bulk client --udp-port N --remote-udp-port N [--address A] [--remote A] [--verify-crc] [--cmt]
 *                         [--buffers BYTES] (-t SECONDS | -n BYTES) [-l BYTES]
 *
 * Buffers (unless --buffers sets them), windows and timers are the library's defaults. By default the library also
 * skips the CRC32c of packets whose two addresses are equal, as on loopback: --verify-crc makes it verify them, as a
 * real network needs.
 *
 * With --address 0.0.0.0 both ends have all their addresses; --cmt then sends on all paths at once.
 *
 * The client sends messages of -l bytes; README.md says how the default was found. The server serves one association and
 * takes the data by callback, which is the library's fastest way. Each prints one JSON line after the graceful shutdown:
 * the server's bytes are what arrived, its seconds run from the first of them to the end, and max_delivery_gap_s is the
 * longest pause between two deliveries.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { SCTP_PORT = 5001, MESSAGE_MAX = 256 * 1024 /* the default send buffer */, FINISH_MS = 2000 };

static struct {
	bool server, verify_crc, cmt;
	uint16_t udp_port, remote_udp_port;
	struct in_addr address, remote;
	double seconds;
	uint64_t bytes;
	uint32_t buffers;
	size_t message;
} opt = { .message = 64 * 1024 };

/* The server's, written by the library's receiving thread until it posts `finished`. */
static uint64_t received;
static double first_at, last_at, delivered_at, longest_gap;
static sem_t finished;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	fprintf(stderr, "usrsctp_bulk: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void print_result(uint64_t bytes, double seconds)
{
	struct rusage usage;
	double cpu;

	getrusage(RUSAGE_SELF, &usage);
	cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
	printf("{\"role\":\"%s\",\"bytes\":%" PRIu64 ",\"seconds\":%.6f,\"mbit_per_s\":%.1f,\"cpu_s\":%.3f",
	       opt.server ? "server" : "client", bytes, seconds, seconds > 0 ? (double)bytes * 8e-6 / seconds : 0.0, cpu);
	if (opt.server)
		printf(",\"max_delivery_gap_s\":%.6f", longest_gap);
	printf("}\n");
	fflush(stdout);
}

/* Called with each piece of data, which is then ours to free, and with NULL at the end of the association. */
static int on_data(struct socket *so, union sctp_sockstore from, void *data, size_t len, struct sctp_rcvinfo info, int flags,
                   void *arg)
{
	double now;

	(void)so, (void)from, (void)info, (void)flags, (void)arg;
	if (data == NULL) {
		last_at = now_s();
		sem_post(&finished);
		return 1;
	}
	now = now_s();
	if (received == 0)
		first_at = now;
	else if (now - delivered_at > longest_gap)
		longest_gap = now - delivered_at;
	delivered_at = now;
	received += len;
	free(data);
	return 1;
}

static struct socket *open_socket(void)
{
	struct sockaddr_in local = { .sin_family = AF_INET, .sin_port = htons(SCTP_PORT), .sin_addr = opt.address };
	struct sctp_udpencaps encaps = { .sue_port = htons(opt.remote_udp_port) };
	struct socket *so = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, opt.server ? on_data : NULL, NULL, 0, NULL);

	if (so == NULL)
		die("socket");
	if (!opt.server && usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof encaps) < 0)
		die("encapsulation port");
	if (usrsctp_bind(so, (struct sockaddr *)&local, sizeof local) < 0)
		die("bind");
	return so;
}

static void serve(void)
{
	struct socket *listening = open_socket(), *so;

	sem_init(&finished, 0, 0);
	if (usrsctp_listen(listening, 1) < 0)
		die("listen");
	printf("{\"event\":\"listening\"}\n");
	fflush(stdout);
	so = usrsctp_accept(listening, NULL, NULL);
	if (so == NULL)
		die("accept");
	usrsctp_close(listening);
	while (sem_wait(&finished) < 0)
		;
	print_result(received, last_at - first_at);
	usrsctp_close(so);
}

static void transfer(void)
{
	struct sockaddr_in remote = { .sin_family = AF_INET, .sin_port = htons(SCTP_PORT), .sin_addr = opt.remote };
	struct socket *so = open_socket();
	char *message = calloc(1, opt.message);
	struct sctp_rcvinfo info;
	socklen_t from_len = 0, info_len = sizeof info;
	unsigned info_type;
	int flags = 0;
	uint64_t sent = 0;
	double start;

	if (message == NULL || usrsctp_connect(so, (struct sockaddr *)&remote, sizeof remote) < 0)
		die("connect");
	start = now_s();
	while (opt.bytes != 0 ? sent < opt.bytes : now_s() - start < opt.seconds) {
		if (usrsctp_sendv(so, message, opt.message, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0)
			die("send");
		sent += opt.message;
	}
	if (usrsctp_shutdown(so, SHUT_WR) < 0)
		die("shutdown");
	/* The end of the association is the end of what can be read: nothing was. */
	if (usrsctp_recvv(so, message, opt.message, NULL, &from_len, &info, &info_len, &info_type, &flags) != 0)
		die("graceful end");
	print_result(sent, now_s() - start);
	usrsctp_close(so);
	free(message);
}

static void usage(const char *problem)
{
	fprintf(stderr,
	        "usrsctp_bulk: %s\n"
	        "usage: usrsctp_bulk server --udp-port N [--address A] [--verify-crc] [--cmt] [--buffers BYTES]\n"
	        "       usrsctp_bulk client --udp-port N --remote-udp-port N [--address A] [--remote A] [--verify-crc] [--cmt]\n"
	        "                           [--buffers BYTES] (-t SECONDS | -n BYTES) [-l MESSAGE_BYTES]\n",
	        problem);
	exit(2);
}

static double number(const char *text, double max, const char *what)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value > 0 && value <= max))
		usage(what);
	return value;
}

static void parse(int argc, char **argv)
{
	bool has_remote = false;

	if (argc < 2 || (strcmp(argv[1], "server") != 0 && strcmp(argv[1], "client") != 0))
		usage("the first argument is server or client");
	opt.server = argv[1][0] == 's';
	inet_pton(AF_INET, "127.0.0.1", &opt.address);
	inet_pton(AF_INET, "127.0.0.1", &opt.remote);
	for (int i = 2; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (strcmp(name, "--verify-crc") == 0) {
			opt.verify_crc = true;
			i--;
		} else if (strcmp(name, "--cmt") == 0) {
			opt.cmt = true;
			i--;
		} else if (value == NULL) {
			usage("an option needs a value");
		} else if (strcmp(name, "--udp-port") == 0) {
			opt.udp_port = (uint16_t)number(value, 65535, name);
		} else if (strcmp(name, "--remote-udp-port") == 0) {
			opt.remote_udp_port = (uint16_t)number(value, 65535, name);
		} else if (strcmp(name, "--address") == 0) {
			if (inet_pton(AF_INET, value, &opt.address) != 1)
				usage(name);
			if (!has_remote)
				opt.remote = opt.address;
		} else if (strcmp(name, "--remote") == 0) {
			if (inet_pton(AF_INET, value, &opt.remote) != 1)
				usage(name);
			has_remote = true;
		} else if (strcmp(name, "--buffers") == 0) {
			opt.buffers = (uint32_t)number(value, 1 << 30, name);
		} else if (strcmp(name, "-t") == 0) {
			opt.seconds = number(value, 3600, name);
		} else if (strcmp(name, "-n") == 0) {
			opt.bytes = (uint64_t)number(value, 1e15, name);
		} else if (strcmp(name, "-l") == 0) {
			opt.message = (size_t)number(value, MESSAGE_MAX, name);
		} else {
			usage(name);
		}
	}
	if (opt.udp_port == 0 || (!opt.server && (opt.remote_udp_port == 0 || (opt.seconds <= 0) == (opt.bytes == 0))))
		usage("ports, and for the client one of -t and -n, are required");
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	usrsctp_init(opt.udp_port, NULL, NULL);
	if (opt.verify_crc)
		usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	if (opt.buffers != 0) {
		usrsctp_sysctl_set_sctp_sendspace(opt.buffers);
		usrsctp_sysctl_set_sctp_recvspace(opt.buffers);
	}
	if (opt.cmt)
		usrsctp_sysctl_set_sctp_cmt_on_off(1);
	if (opt.server)
		serve();
	else
		transfer();
	for (int ms = 0; usrsctp_finish() != 0 && ms < FINISH_MS; ms += 10)
		usleep(10000);
	return 0;
}
