/* Shared by the parts of usrsctp_peer: what was asked for (options.c) and what happened (report.c). */
#ifndef MANYPATH_INTEROP_PEER_H
#define MANYPATH_INTEROP_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_TIMED_OUT = 3 };
enum {
	HEADER_LEN = 8,
	MESSAGE_MAX = 1 << 20,      /* bytes; longer ones fail verification */
	INDEX_MAX = 1 << 24,        /* messages in one run; bounds `seen` to 2 MiB */
	ADDRESSES_MAX = 8,
	SIZES_MAX = 16,
	STREAMS_MAX = 65535,
	EVENTS_MAX = 64,            /* later notifications are counted, not listed */
	FINISH_MS = 1000            /* for usrsctp's own end */
};

enum task { TASK_NONE, TASK_SEND, TASK_RECEIVE, TASK_ECHO };
enum closing { CLOSE_UNSET, CLOSE_SHUTDOWN, CLOSE_ABORT };

struct addresses {
	int count;
	bool any_v6;
	struct sockaddr_storage list[ADDRESSES_MAX];
};

struct options {
	bool listen, unordered, echoed, nr_sack, interleave, json;
	enum task task;
	uint64_t bytes;             /* to send, or to receive before closing; 0: until the peer closes */
	uint8_t seed;
	uint16_t udp_port, remote_udp_port, sctp_port, remote_sctp_port;
	struct addresses local, remote;
	uint32_t sizes[SIZES_MAX];
	int size_count;
	uint16_t streams;
	enum closing close, expect_close;
	int cmt;
	uint32_t heartbeat_ms, rto_min_ms, path_max_retrans; /* 0: usrsctp's default */
	uint32_t receive_buffer;    /* in bytes; 0 for usrsctp's default */
	uint32_t pace_ms;           /* pause after each message sent */
	uint32_t linger_ms;         /* keep answering after the association ended */
	uint32_t timeout_s;
};

/* What happened, guarded by `lock`; the main thread prints it, even when the others hang. */
struct report {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done, up, lost, shut_down, peer_shutdown, peer_abort, local_shutdown, local_abort;
	uint64_t bytes_sent, messages_sent, bytes_received, messages_received, ppid_mismatches;
	uint32_t index_end;         /* highest received index + 1 */
	char error[200];            /* the first failure; empty: none */
	char events[EVENTS_MAX][160];
	int event_count;
};

extern struct options opt;
extern struct report report;

/* options.c: fills `opt`, or prints what is wrong and exits with EXIT_USAGE. */
void parse_options(int argc, char **argv);

/* report.c */
void report_init(void);
/* Records the first failure. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Records an event; the text is one JSON object. */
void add_event(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sets one fact of the report and wakes whoever waits for it. */
void set_flag(bool *flag);
/* Waits until `flag` is set; false: not within `ms`. */
bool wait_flag(const bool *flag, uint64_t ms);
/* Who ended the association. Called with the lock held or after all threads ended. */
const char *closed_by(void);
/* Prints the result, as closed_by() is called; returns the exit code. */
int print_report(bool timed_out);

#endif
