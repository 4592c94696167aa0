/* usrsctp_peer's report: what happened, collected by several threads, printed once by the main one. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "peer.h"

struct report report = { .lock = PTHREAD_MUTEX_INITIALIZER };

void report_init(void)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&report.changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&report.lock);
	if (report.error[0] == '\0')
		vsnprintf(report.error, sizeof report.error, format, args);
	pthread_mutex_unlock(&report.lock);
	va_end(args);
}

void add_event(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&report.lock);
	if (report.event_count < EVENTS_MAX)
		vsnprintf(report.events[report.event_count], sizeof report.events[0], format, args);
	report.event_count++;
	pthread_mutex_unlock(&report.lock);
	va_end(args);
}

void set_flag(bool *flag)
{
	pthread_mutex_lock(&report.lock);
	*flag = true;
	pthread_cond_broadcast(&report.changed);
	pthread_mutex_unlock(&report.lock);
}

static struct timespec deadline_in_ms(uint64_t ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

bool wait_flag(const bool *flag, uint64_t ms)
{
	struct timespec until = deadline_in_ms(ms);
	int rc = 0;
	bool set;

	pthread_mutex_lock(&report.lock);
	while (!*flag && rc == 0)
		rc = pthread_cond_timedwait(&report.changed, &report.lock, &until);
	set = *flag;
	pthread_mutex_unlock(&report.lock);
	return set;
}

const char *closed_by(void)
{
	if (report.local_abort)
		return "local-abort";
	if (report.peer_abort)
		return "peer-abort";
	if (report.lost)
		return "local-failure"; /* Association.Max.Retrans, or an INIT nobody answered */
	if (!report.shut_down)
		return "open";
	return report.local_shutdown ? "local-shutdown" : "peer-shutdown";
}

int print_report(bool timed_out)
{
	static const char *const tasks[] = { "none", "send", "receive", "echo" };
	const char *end = closed_by();
	bool ok;

	if (timed_out && report.error[0] == '\0')
		snprintf(report.error, sizeof report.error, "timed out after %" PRIu32 " s", opt.timeout_s);
	ok = report.error[0] == '\0';
	if (!opt.json) {
		printf("%s: sent %" PRIu64 " bytes, received %" PRIu64 " bytes, closed by %s%s%s\n", ok ? "ok" : "FAILED",
		       report.bytes_sent, report.bytes_received, end, ok ? "" : ": ", report.error);
	} else {
		printf("{\"reliable_received\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"given_up\":%" PRIu64
		       ",\"number_restarts\":%" PRIu64 ",\"reconfigurations\":%" PRIu32 ",",
		       report.reliable_received, report.index_end - report.messages_received, report.given_up,
		       report.number_restarts, report.reconfigurations);
		printf("\"role\":\"%s\",\"task\":\"%s\",\"bytes\":%" PRIu64 ",\"messages\":%" PRIu64
		       ",\"bytes_sent\":%" PRIu64 ",\"messages_sent\":%" PRIu64 ",\"bytes_received\":%" PRIu64
		       ",\"messages_received\":%" PRIu64 ",\"ppid_mismatches\":%" PRIu64
		       ",\"ok\":%s,\"error\":\"%s\",\"closed_by\":\"%s\",\"events\":[",
		       opt.listen ? "listen" : "connect", tasks[opt.task],
		       opt.task == TASK_SEND ? report.bytes_sent : report.bytes_received,
		       opt.task == TASK_SEND ? report.messages_sent : report.messages_received, report.bytes_sent,
		       report.messages_sent, report.bytes_received, report.messages_received, report.ppid_mismatches,
		       ok ? "true" : "false", report.error, end);
		for (int i = 0; i < report.event_count && i < EVENTS_MAX; i++)
			printf("%s%s", i == 0 ? "" : ",", report.events[i]);
		printf("],\"events_total\":%d}\n", report.event_count);
	}
	fflush(stdout);
	return timed_out ? EXIT_TIMED_OUT : ok ? EXIT_OK : EXIT_FAILED;
}
