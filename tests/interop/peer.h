/* Shared by the parts of usrsctp_peer: what was asked for (options.c), what happened (report.c), and extensions.c. */
#ifndef MANYPATH_INTEROP_PEER_H
#define MANYPATH_INTEROP_PEER_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_TIMED_OUT = 3 };
enum {
	HEADER_LEN = 8,
	MESSAGE_MAX = 1 << 20,      /* bytes; longer ones fail verification */
	INDEX_MAX = 1 << 24,        /* messages in one run; bounds `seen` to 2 MiB */
	ADDRESSES_MAX = 8,
	SIZES_MAX = 16,
	ACTIONS_MAX = 16,
	AUTH_CHUNKS_MAX = 8,
	AUTH_KEY_MAX = 64,          /* bytes */
	STREAMS_MAX = 65535,
	EVENTS_MAX = 64,            /* later notifications are counted, not listed */
	FINISH_MS = 1000            /* for usrsctp's own end */
};

enum task { TASK_NONE, TASK_SEND, TASK_RECEIVE, TASK_ECHO };
enum action_kind { ACTION_NONE, ACTION_RESET_OUT, ACTION_RESET_IN, ACTION_ADD_OUT, ACTION_ADD_IN, ACTION_RESET_ASSOCIATION,
                   ACTION_ADD_ADDRESS, ACTION_DELETE_ADDRESS, ACTION_PREFER_ADDRESS };
enum closing { CLOSE_UNSET, CLOSE_SHUTDOWN, CLOSE_ABORT };

struct addresses {
	int count;
	bool any_v6;
	struct sockaddr_storage list[ADDRESSES_MAX];
};

/* A request of RFC 6525 or RFC 5061, made once that many messages were sent or received. */
struct action {
	uint64_t at;
	enum action_kind kind;
	bool has_value;             /* without: all streams */
	uint16_t value;             /* a stream, or a number of streams */
	struct in_addr address;     /* one of ours */
};

struct options {
	bool listen, unordered, echoed, nr_sack, interleave, json;
	bool reconfigure, sack_immediately, one_at_a_time, has_udp_port, keep_listening;
	enum task task;
	uint64_t bytes;             /* to send, or to receive before closing; 0: until the peer closes */
	uint8_t seed;
	uint16_t udp_port, remote_udp_port; /* 0: over IP itself */
	uint16_t sctp_port, remote_sctp_port;
	struct addresses local, remote;
	uint32_t sizes[SIZES_MAX];
	int size_count;
	uint16_t streams;
	enum closing close, expect_close;
	int cmt;
	uint32_t heartbeat_ms, rto_min_ms, path_max_retrans; /* 0: usrsctp's default */
	uint32_t receive_buffer;    /* in bytes; 0 for usrsctp's default */
	uint32_t send_buffer;       /* in bytes */
	uint32_t sack_delay_ms;     /* 0: usrsctp's default */
	int limit;                  /* SCTP_PR_SCTP_...: how messages that are sent are limited */
	uint32_t limit_value;
	uint32_t reliable_every;    /* messages whose index it divides have no limit; 0: no messages have one */
	struct action actions[ACTIONS_MAX];
	int action_count;
	uint32_t await;             /* reconfigurations, before the task ends */
	uint8_t auth_chunks[AUTH_CHUNKS_MAX]; /* types that the peer must authenticate */
	int auth_chunk_count;
	uint16_t auth_key_number;
	char auth_key[AUTH_KEY_MAX + 1]; /* empty: none */
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
	uint64_t reliable_received, given_up, number_restarts;
	uint32_t reconfigurations;  /* of both sides, performed or refused; each stream that is reset counts */
	char error[200];            /* the first failure; empty: none */
	char events[EVENTS_MAX][160];
	int event_count;
};

struct socket;
struct sctp_rcvinfo;
struct sctp_sndinfo;
union sctp_notification;

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

/* extensions.c */
/* True if the message may not be missing. */
bool is_reliable(uint32_t index);
/* Checks the number of an ordered message in its stream, where the options say that it matters. */
void check_number(const struct sctp_rcvinfo *info);
/* Takes a notification of an extension; false: it is none. */
bool on_extension(const union sctp_notification *note);
/* Makes the requests that are due after so many messages. */
void do_actions(struct socket *so, uint64_t messages);
/* Waits until as many reconfigurations were reported as --await says, or the association ended. */
void await_reconfigurations(void);
/* Sends a message, with a limit if `limited`. */
/* Asks for authentication as the options say. Negative on failure. */
int authenticate(struct socket *so);
ssize_t send_with_options(struct socket *so, const void *data, size_t len, const struct sctp_sndinfo *info, bool limited);

#endif
