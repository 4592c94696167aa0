/*
 * Handshake, restart and shutdown of an SCTP association with two paths (RFC 9260 §4, §5, §8.4,
 * §9).
 *
 * Two ends exchange packets over two paths. README.md lists the abstractions and bounds; run.py
 * checks the scenarios and mutations of cases.py. Section numbers are those of RFC 9260.
 */

#define ROOM                6   /* packets on a path in one direction */

/* ---- States, chunks, causes ---- */

#define CLOSED              0
#define COOKIE_WAIT         1
#define COOKIE_ECHOED       2
#define ESTABLISHED         3
#define SHUTDOWN_PENDING    4
#define SHUTDOWN_SENT       5
#define SHUTDOWN_RECEIVED   6
#define SHUTDOWN_ACK_SENT   7

#define INIT                1
#define INIT_ACK            2
#define COOKIE_ECHO         3
#define COOKIE_ACK          4
#define DATA                5
#define SACK                6
#define SHUTDOWN            7
#define SHUTDOWN_ACK        8
#define SHUTDOWN_COMPLETE   9
#define ABORT               10
#define STALE_COOKIE        11  /* ERROR with that cause */
#define HEARTBEAT           12
#define HEARTBEAT_ACK       13
/* Causes that are no chunks. */
#define ASSOCIATE           14
#define CALL_SHUTDOWN       15
#define CALL_ABORT          16
#define RESTART             17
#define TIMER               18
#define NOTHING_OUTSTANDING 19

/* A message: none, in flight, acknowledged. */
#define NONE                0
#define IN_FLIGHT           1
#define ACKED               2

/* Tags of A begin at 1, tags of Z at 17. The attacker has this one. */
#define FORGED              15
#define FIRST_TAG(end)      (1 + 16 * (end))
#define TAGS                13

/* ---- Properties, by the name that a violated assertion shows ---- */

/* §5.1, §5.2, §5.1.4: a handshake ends in ESTABLISHED if the network delivers. */
hidden byte handshake_completes = 0;
/* §5.1, §5.2.1, §8.4: no two ends stay open with different tags. They learn of it by an answer. */
hidden byte ends_agree = 0;
/* §9.2: a shutdown ends in CLOSED at both ends if the network delivers. */
hidden byte shutdown_completes = 0;
/* §9.2: both ends learn that the shutdown was graceful. */
hidden byte shutdown_is_graceful = 0;
/* §9.2: data handed over before the shutdown is delivered before the end. */
hidden byte shutdown_loses_no_data = 0;
/* §5.2.4, action A: a restart makes one association with new tags. */
hidden byte restart_renews_tags = 0;
/* §5.2.4 (3), §5.2.3: late handshake packets do not move ends that agree. */
hidden byte old_cookie_moves_nothing = 0;
/* §8.5, §8.5.1, §5.2.2: packets with a guessed tag move nothing. */
hidden byte forgery_moves_nothing = 0;
/* §5.3.1, §5.1.5: no two associations of an end have one tag. */
hidden byte tag_is_used_once = 0;
/* §4: the states of two ends with each other's tags fit together. */
hidden byte states_fit = 0;
/* §4: an end without a timer is CLOSED or ESTABLISHED. */
hidden byte nobody_waits_for_ever = 0;
/* Both ends count the TSNs of each direction from one number (§5.2.4, action B). */
hidden byte tsns_agree = 0;

/* ---- Bounds of a scenario, each for the whole run: environment variables of the verifier ---- */

c_decl {
\#include <stdio.h>
\#include <stdlib.h>
\#include <string.h>
static int bound(const char *name, int otherwise)
{
    return getenv(name) ? atoi(getenv(name)) : otherwise;
}
/* True for a property that is not to be looked at: ONLY names another. */
static int is_left_out(const char *property)
{
    return getenv("ONLY") && strcmp(getenv("ONLY"), property) != 0;
}
}

/* End A takes associations that Z begins; Z always does. */
hidden byte accepts_a = 0;
/* Max.Init.Retransmits and Association.Max.Retrans. */
hidden byte limit = 0;
/* The network may fail for longer than the ends wait. */
hidden byte may_fail = 0;
/* Nothing but a shutdown ends the association. */
hidden byte is_calm = 0;
/* The number of a mutation. */
hidden byte mutation = 0;

/* ---- Mutations: each makes a property fail, see cases.py. ---- */

#define mutated(name) (mutation == name)
#define crossing_init_gets_new_tag      1
#define restart_keeps_tag               2
#define init_ends_association           3
#define cookie_needs_no_mac             4
#define used_cookie_counts              5
#define collision_keeps_peer_tag        6
#define late_cookie_counts              7
#define restart_needs_no_tie_tags       8
#define stale_cookie_is_ignored         9
#define shutdown_does_not_wait          10
#define shutdown_ack_does_not_wait      11
#define shutdown_sent_takes_no_data     12
#define crossing_shutdown_is_ignored    13
#define reflected_complete_is_ignored   14
#define abort_needs_no_tag              15
#define abort_is_answered               16
#define late_shutdown_ack_is_ignored    17
#define late_packets_draw_abort         18
#define timers_keep_their_path          19
#define shutdown_has_no_timer           20
#define data_reopens                    21
/* Rules of the RFC that the engine does not follow. */
#define newer_cookie_has_no_action      22
#define open_association_changes_peer   23
#define old_cookie_changes_peer         24
#define stale_cookie_keeps_tag          25

#define must(cond, property) assert(property || (cond))

/* ---- The network ---- */

/* A packet has one chunk: its type; the verification tag; the T bit; the initiate tag, the cookie's
 * own tag, the association that DATA belongs to, or the acknowledgement; the cookie's peer tag; the
 * cookie's tie tags. The wire to an end over a path is wire[2 * end + path]. */
chan wire[4] = [ROOM] of { byte, byte, bit, byte, byte, byte, byte };
bit up[2] = 1;

byte losses;
byte duplicates;
byte early;
byte stale;
byte failing;
byte forgeries;
byte refusals;
byte probes;

#define quiet (len(wire[0]) + len(wire[1]) + len(wire[2]) + len(wire[3]) == 0)

/* ---- The two ends ---- */

byte state[2];
byte tag[2];                    /* own verification tag; 0 without an association */
byte peer[2];                   /* the peer's */
byte tie_own[2], tie_peer[2];   /* tie tags in the cookie that is echoed */
byte tries[2];                  /* timeouts since the peer was heard */
byte stales[2];                 /* cookies that were too old */
bit way[2];                     /* the primary path */
byte data[2];                   /* the message of this end */
bit got[2];                     /* the peer's message is here */
byte rx[2];                     /* the peer's tag whose TSNs this end expects */

byte next_tag[2];
byte first_tag[2];              /* the first since the last restart: older cookies do not verify */
byte newest_tag[2];             /* the newest of an association: older cookies are superseded */
byte stale_own, stale_peer;     /* the tags of the cookie that has expired */
byte shut_tag[2];               /* that of the association that was shut down last */

/* For the properties only. */
short used[2];                  /* tags of associations */
bit delivered[2];               /* the message of this end has arrived */
bit asked[2];                   /* SHUTDOWN was called */
byte open_tag[2];               /* the tags on which both ends agreed last */
bit graceful[2];                /* the last association was shut down */

byte connects[2], messages[2], shutdowns[2], aborts[2], restarts[2];

#define other (1 - me)
#define is_open(end)    (state[end] >= ESTABLISHED)
#define match           (tag[0] != 0 && peer[0] == tag[1] && peer[1] == tag[0])
#define agreed          (is_open(0) && is_open(1) && match)
#define is_timed(end)   (data[end] == IN_FLIGHT || state[end] == COOKIE_WAIT || \
                         state[end] == COOKIE_ECHOED || \
                         (state[end] == SHUTDOWN_SENT && !mutated(shutdown_has_no_timer)) || \
                         state[end] == SHUTDOWN_ACK_SENT)
/* Heartbeats of ends that agree change nothing, so only the others send them. */
#define is_doubtful(end) (state[end] == ESTABLISHED && !is_timed(0) && !is_timed(1) && !agreed)
#define is_at_rest(end) (!is_timed(end) && !is_doubtful(end))

/* ---- The list of transitions ---- */

c_decl {
static char noted[2][8][20][4][8][4];
}

/* Prints a transition when it is first seen. */
c_code {
static const char *const state_names[] = {
    "CLOSED", "COOKIE-WAIT", "COOKIE-ECHOED", "ESTABLISHED", "SHUTDOWN-PENDING", "SHUTDOWN-SENT",
    "SHUTDOWN-RECEIVED", "SHUTDOWN-ACK-SENT" };
static const char *const cause_names[] = {
    "", "INIT", "INIT-ACK", "COOKIE-ECHO", "COOKIE-ACK", "DATA", "SACK", "SHUTDOWN", "SHUTDOWN-ACK",
    "SHUTDOWN-COMPLETE", "ABORT", "STALE-COOKIE", "HEARTBEAT", "HEARTBEAT-ACK", "associate",
    "shutdown", "abort", "restart", "timer", "nothing-outstanding" };
static const char *const tag_names[] = { "-", "own", "reflected", "other" };
static const char *const change_names[] = { "-", "same", "peer", "both" };

static void note(int from, int cause, int by_tag, int to, int change)
{
    char *is_noted = &noted[0][from][cause][by_tag][to][change];
    if (!*is_noted)
        printf("transition,%s,%s,%s,%s,%s\n", state_names[from], cause_names[cause],
               tag_names[by_tag], state_names[to], change_names[change]);
    *is_noted = 1;
}
}

/* ---- Parts of an event. They use the variables of End. ---- */

inline begin() {
    from = state[me]; from_tag = tag[me]; from_peer = peer[me]; had_agreed = agreed
}

inline note_transition(why) {
    cause = why;
    c_code {
        int me = PEnd->me, change = 0;
        if (PEnd->from >= 3 && now.state[me] >= 3)
            change = now.tag[me] != PEnd->from_tag ? 3 : now.peer[me] != PEnd->from_peer ? 2 : 1;
        note(PEnd->from, PEnd->cause, PEnd->by_tag, now.state[me], change);
#ifdef STORY
        printf("%c: %s, %s tag %d of %d/%d on %d: %s with %d/%d\n", "AZ"[me],
               state_names[PEnd->from], cause_names[PEnd->cause], PEnd->v, PEnd->o, PEnd->p,
               PEnd->on, state_names[now.state[me]], now.tag[me], now.peer[me]);
#endif
    }
}

inline put(path, c, tagged, reflects, own, theirs, tie1, tie2) {
    if
    :: up[path] ->
        assert(len(wire[2 * other + path]) < ROOM);
        wire[2 * other + path] ! c, tagged, reflects, own, theirs, tie1, tie2
    :: else
    fi
}

/* Answers leave on the path that the question came on (§6.4). */
inline answer(c) { put(on, c, peer[me], 0, got[me], 0, 0, 0) }

inline draw_tag() {
    assert(next_tag[me] < FIRST_TAG(me) + TAGS);
    fresh = next_tag[me];
    next_tag[me]++
}

inline note_used(own) {
    must((used[me] & (1 << (own - FIRST_TAG(me)))) == 0, tag_is_used_once);
    used[me] = used[me] | (1 << (own - FIRST_TAG(me)))
}

inline close(is_graceful) {
    if
    :: is_graceful ->
        must(data[me] != IN_FLIGHT && (data[me] == NONE || delivered[me]), shutdown_loses_no_data);
        shut_tag[me] = tag[me]
    :: else
    fi;
    graceful[me] = is_graceful;
    if :: tag[me] > newest_tag[me] -> newest_tag[me] = tag[me] :: else fi;
    state[me] = CLOSED; tag[me] = 0; peer[me] = 0; tries[me] = 0; stales[me] = 0; way[me] = 0;
    tie_own[me] = 0; tie_peer[me] = 0;
    data[me] = NONE; got[me] = 0; rx[me] = 0; delivered[me] = 0
}

inline send_data() { put(way[me], DATA, peer[me], 0, tag[me], 0, 0, 0) }

inline establish() {
    state[me] = ESTABLISHED; tries[me] = 0; stales[me] = 0; tie_own[me] = 0; tie_peer[me] = 0;
    data[me] = NONE; got[me] = 0; rx[me] = peer[me]; delivered[me] = 0; asked[me] = 0
}

/* The association of a cookie. */
inline begin_by_cookie() {
    note_used(o);
    if :: o > newest_tag[me] -> newest_tag[me] = o :: else fi;
    tag[me] = o; peer[me] = p; way[me] = on;
    establish()
}

inline send_init() { put(way[me], INIT, 0, 0, tag[me], 0, 0, 0) }

inline send_cookie_echo() {
    put(way[me], COOKIE_ECHO, peer[me], 0, peer[me], tag[me], tie_own[me], tie_peer[me])
}

/* The message is sent once the association is open; §9.2: SHUTDOWN or SHUTDOWN ACK follows once
 * nothing is outstanding. */
inline go_on() {
    if
    :: state[me] == ESTABLISHED && data[me] == NONE && messages[me] > 0 ->
        messages[me]--; data[me] = IN_FLIGHT; send_data()
    :: else
    fi;
    if
    :: state[me] == SHUTDOWN_PENDING &&
            (data[me] != IN_FLIGHT || mutated(shutdown_does_not_wait)) ->
        begin(); by_tag = 0;
        state[me] = SHUTDOWN_SENT; tries[me] = 0;
        put(way[me], SHUTDOWN, peer[me], 0, got[me], 0, 0, 0);
        note_transition(NOTHING_OUTSTANDING)
    :: state[me] == SHUTDOWN_RECEIVED &&
            (data[me] != IN_FLIGHT || mutated(shutdown_ack_does_not_wait)) ->
        begin(); by_tag = 0;
        state[me] = SHUTDOWN_ACK_SENT; tries[me] = 0;
        put(way[me], SHUTDOWN_ACK, peer[me], 0, 0, 0, 0, 0);
        note_transition(NOTHING_OUTSTANDING)
    :: else
    fi
}

/* The peer has restarted since it made the cookie, so it drops the cookie silently (§5.1.5). */
#define cookie_is_lost  (state[me] == COOKIE_ECHOED && peer[me] < first_tag[other])

#define may_give_up (may_fail || cookie_is_lost)

/* ---- Arrivals ---- */

/* §5.1 B, §5.2.1, §5.2.2, §9.2. */
inline on_init() {
    if
    :: state[me] == CLOSED && (me == 1 || accepts_a) ->
        draw_tag(); put(on, INIT_ACK, o, 0, fresh, o, 0, 0)
    :: state[me] == CLOSED && !(me == 1 || accepts_a) ->
        put(on, ABORT, o, 0, 0, 0, 0, 0)                        /* §8.4 (3) */
    :: state[me] == COOKIE_WAIT || state[me] == COOKIE_ECHOED ->
        if
        :: mutated(crossing_init_gets_new_tag) ->
            draw_tag(); put(on, INIT_ACK, o, 0, fresh, o, 0, 0)
        :: else ->
            put(on, INIT_ACK, o, 0, tag[me], o, tag[me], peer[me]);
            if
            :: tag[me] == stale_own && o == stale_peer -> stale_own = 0; stale_peer = 0
            :: else
            fi
        fi
    :: state[me] == SHUTDOWN_ACK_SENT -> answer(SHUTDOWN_ACK)
    :: (is_open(me) && state[me] != SHUTDOWN_ACK_SENT || state[me] == COOKIE_ECHOED) &&
            refusals > 0 ->
        /* It lists an address that the association does not have. */
        refusals--;
        put(on, ABORT, o, 0, 0, 0, 0, 0)
    :: is_open(me) && state[me] != SHUTDOWN_ACK_SENT ->
        if
        :: mutated(restart_keeps_tag) ->
            put(on, INIT_ACK, o, 0, tag[me], o, tag[me], peer[me])
        :: mutated(init_ends_association) -> close(false)
        :: else ->
            draw_tag(); put(on, INIT_ACK, o, 0, fresh, o, tag[me], peer[me])
        fi
    fi
}

/* §5.1 C, §5.2.3. */
inline on_init_ack() {
    if
    :: state[me] == COOKIE_WAIT && is_mine ->
        state[me] = COOKIE_ECHOED; tries[me] = 0;
        peer[me] = o; tie_own[me] = t_o; tie_peer[me] = t_p; way[me] = on;
        send_cookie_echo()
    :: else
    fi
}

/* The peer has begun again since it sent the INIT of the cookie that opened the association: this
 * cookie is newer. By §5.2.4 it has no action, unless it has tie tags. */
#define is_newer        (is_open(me) && o > tag[me] && !mutated(newer_cookie_has_no_action))

/* The cookie has the tie tags of the association, and another peer's tag. */
#define is_tied         (p != peer[me] && t_o == tag[me] && t_p == peer[me])

/* A cookie with our tag may change the peer's: nothing has opened the association, and no INIT ACK
 * has told the peer's tag since the cookie was made. By §5.2.4, action B, it always does. */
#define may_change_peer (state[me] == COOKIE_WAIT || \
                         (state[me] == COOKIE_ECHOED && !mutated(collision_keeps_peer_tag) && \
                          (t_p == peer[me] || mutated(old_cookie_changes_peer))) || \
                         (is_open(me) && (mutated(open_association_changes_peer) || \
                                          mutated(restart_keeps_tag))))

/* §5.1.5, §5.2.4. */
inline on_cookie_echo() {
    if
    :: o < first_tag[me] && !mutated(cookie_needs_no_mac) -> skip
    :: (o >= first_tag[me] || mutated(cookie_needs_no_mac)) && !(o == tag[me] && p == peer[me]) &&
            (stale > 0 || (o == stale_own && p == stale_peer)) ->
        if
        :: o == stale_own && p == stale_peer -> skip
        :: else -> stale--; stale_own = o; stale_peer = p
        fi;
        put(on, STALE_COOKIE, p, 0, 0, 0, 0, 0)
    :: (o >= first_tag[me] || mutated(cookie_needs_no_mac)) &&
            (o != stale_own || p != stale_peer || (o == tag[me] && p == peer[me])) ->
        if
        :: state[me] == CLOSED && (me == 1 || accepts_a) &&
                (o > newest_tag[me] || mutated(used_cookie_counts)) ->
            begin_by_cookie(); answer(COOKIE_ACK)
        :: state[me] == CLOSED && !(me == 1 || accepts_a) && o > newest_tag[me] ->
            put(on, ABORT, p, 0, 0, 0, 0, 0)
        :: state[me] == CLOSED && o <= newest_tag[me] && !mutated(used_cookie_counts) ->
            /* The association of this cookie, or of a newer one, is over. */
            if
            :: o == shut_tag[me] -> skip
            :: o != shut_tag[me] && o == newest_tag[me] -> put(on, ABORT, p, 0, 0, 0, 0, 0)
            :: o < newest_tag[me] -> put(on, STALE_COOKIE, p, 0, 0, 0, 0, 0)
            fi
        /* Action D. */
        :: state[me] != CLOSED && o == tag[me] && p == peer[me] ->
            if :: state[me] == COOKIE_ECHOED -> establish() :: else fi;
            answer(COOKIE_ACK)
        /* Action B. A peer that waits with the tag of the cookie asks for a new one. */
        :: state[me] != CLOSED && o == tag[me] && p != peer[me] && may_change_peer ->
            peer[me] = p;
            if :: !is_open(me) -> way[me] = on; establish() :: else fi;
            answer(COOKIE_ACK)
        :: state[me] != CLOSED && o == tag[me] && p != peer[me] && !may_change_peer ->
            put(on, STALE_COOKIE, p, 0, 0, 0, 0, 0)
        /* Actions A and C. */
        :: state[me] != CLOSED && o != tag[me] ->
            if
            :: (is_tied || is_newer) && state[me] == SHUTDOWN_ACK_SENT -> answer(SHUTDOWN_ACK)
            :: ((is_tied || is_newer) && state[me] != SHUTDOWN_ACK_SENT) ||
                    mutated(restart_needs_no_tie_tags) ||
                    (mutated(late_cookie_counts) && p == peer[me]) ->
                begin_by_cookie(); answer(COOKIE_ACK)
            :: else
            fi
        fi
    fi
}

/* §5.1 E. */
inline on_cookie_ack() {
    if :: state[me] == COOKIE_ECHOED && is_mine -> establish() :: else fi
}

/* §5.2.6. */
inline on_stale_cookie() {
    if
    :: state[me] == COOKIE_ECHOED && is_mine && !mutated(stale_cookie_is_ignored) ->
        stales[me]++;
        if
        :: stales[me] > limit ->
            must(may_give_up, handshake_completes);
            close(false)
        :: else ->
            state[me] = COOKIE_WAIT; tries[me] = 0;
            peer[me] = 0; tie_own[me] = 0; tie_peer[me] = 0; way[me] = on;
            if
            :: mutated(stale_cookie_keeps_tag) -> skip
            :: else -> draw_tag(); note_used(fresh); tag[me] = fresh
            fi;
            send_init()
        fi
    :: else
    fi
}

/* §9.2. The association that DATA names stands for its TSNs. */
inline on_data() {
    if
    :: is_mine && o == rx[me] && (state[me] == ESTABLISHED || state[me] == SHUTDOWN_PENDING ||
            (state[me] == SHUTDOWN_SENT && !mutated(shutdown_sent_takes_no_data))) ->
        got[me] = 1;
        if :: tag[other] == o -> delivered[other] = 1 :: else fi;
        if
        :: state[me] == SHUTDOWN_SENT ->
            answer(SHUTDOWN);
            if :: mutated(data_reopens) -> state[me] = ESTABLISHED :: else fi
        :: else -> answer(SACK)
        fi
    :: else
    fi
}

inline on_sack() {
    if :: is_open(me) && is_mine && o && data[me] == IN_FLIGHT -> data[me] = ACKED :: else fi
}

inline on_shutdown() {
    if
    :: is_open(me) && is_mine ->
        if :: o && data[me] == IN_FLIGHT -> data[me] = ACKED :: else fi;
        if
        :: state[me] == ESTABLISHED || state[me] == SHUTDOWN_PENDING ->
            state[me] = SHUTDOWN_RECEIVED; way[me] = on
        :: state[me] == SHUTDOWN_SENT && !mutated(crossing_shutdown_is_ignored) ->
            state[me] = SHUTDOWN_ACK_SENT; tries[me] = 0; answer(SHUTDOWN_ACK)
        :: state[me] == SHUTDOWN_ACK_SENT -> answer(SHUTDOWN_ACK)
        :: else
        fi
    :: else
    fi
}

inline on_shutdown_ack() {
    if
    :: (state[me] == SHUTDOWN_SENT || state[me] == SHUTDOWN_ACK_SENT) && is_mine ->
        put(on, SHUTDOWN_COMPLETE, peer[me], 0, 0, 0, 0, 0);
        close(true)
    :: state[me] == COOKIE_WAIT || state[me] == COOKIE_ECHOED ->
        put(on, SHUTDOWN_COMPLETE, v, 1, 0, 0, 0, 0)            /* §8.5.1 E */
    :: else
    fi
}

inline on_shutdown_complete() {
    if
    :: state[me] == SHUTDOWN_ACK_SENT &&
            (is_mine || (is_reflected && !mutated(reflected_complete_is_ignored))) ->
        close(true)
    :: else
    fi
}

/* §8.5.1 B. */
inline on_abort() {
    if
    :: state[me] != CLOSED && (is_mine || is_reflected || mutated(abort_needs_no_tag)) ->
        /* The peer has closed already, and its answer overtook SHUTDOWN COMPLETE. */
        close(state[me] == SHUTDOWN_ACK_SENT && is_reflected && !mutated(late_packets_draw_abort))
    :: else
    fi
}

/* §8.4. */
inline out_of_the_blue() {
    if
    :: chunk == SHUTDOWN_COMPLETE || chunk == COOKIE_ACK || chunk == STALE_COOKIE ||
            (chunk == ABORT && !mutated(abort_is_answered)) -> skip
    :: chunk == SHUTDOWN_ACK ->
        if
        :: mutated(late_shutdown_ack_is_ignored) -> skip
        :: else -> put(on, SHUTDOWN_COMPLETE, v, 1, 0, 0, 0, 0)
        fi
    :: else ->
        if
        /* Not to packets of an association that was shut down: ABORT may overtake SHUTDOWN
         * COMPLETE. */
        :: v == shut_tag[me] && !mutated(late_packets_draw_abort) -> skip
        :: else -> put(on, ABORT, v, 1, 0, 0, 0, 0)
        fi
    fi
}

inline receive() {
    begin();
    is_mine = !t && v == tag[me] && state[me] != CLOSED;
    is_reflected = t && v == peer[me] && state[me] != CLOSED && v != 0;
    by_tag = (state[me] == CLOSED || chunk == INIT -> 0 : (is_mine -> 1 : (is_reflected -> 2 : 3)));
    if
    :: chunk == INIT -> on_init()
    :: chunk == COOKIE_ECHO -> on_cookie_echo()
    :: state[me] == CLOSED && chunk != INIT && chunk != COOKIE_ECHO -> out_of_the_blue()
    :: state[me] != CLOSED && chunk == INIT_ACK -> on_init_ack()
    :: state[me] != CLOSED && chunk == COOKIE_ACK -> on_cookie_ack()
    :: state[me] != CLOSED && chunk == STALE_COOKIE -> on_stale_cookie()
    :: state[me] != CLOSED && chunk == DATA -> on_data()
    :: state[me] != CLOSED && chunk == SACK -> on_sack()
    :: state[me] != CLOSED && chunk == SHUTDOWN -> on_shutdown()
    :: state[me] != CLOSED && chunk == SHUTDOWN_ACK -> on_shutdown_ack()
    :: state[me] != CLOSED && chunk == SHUTDOWN_COMPLETE -> on_shutdown_complete()
    :: state[me] != CLOSED && chunk == ABORT -> on_abort()
    :: state[me] != CLOSED && chunk == HEARTBEAT ->
        if
        :: (is_open(me) || state[me] == COOKIE_ECHOED) && is_mine -> answer(HEARTBEAT_ACK)
        :: else
        fi
    :: state[me] != CLOSED && chunk == HEARTBEAT_ACK -> skip
    fi;
    if :: is_mine && state[me] != CLOSED -> tries[me] = 0 :: else fi;
    must(!(chunk == COOKIE_ECHO || chunk == COOKIE_ACK || chunk == INIT_ACK || chunk == INIT ||
        chunk == STALE_COOKIE) || !had_agreed || agreed, old_cookie_moves_nothing);
    must(!(v == FORGED || o == FORGED) || from == CLOSED ||
        (state[me] == from && tag[me] == from_tag && peer[me] == from_peer), forgery_moves_nothing);
    note_transition(chunk)
}

/* ---- Timers ---- */

/* T1-init, T1-cookie, T2-shutdown, T3-rtx: again on the other path, or over. */
inline expire() {
    begin(); by_tag = 0;
    tries[me]++;
    if
    :: tries[me] > limit ->
        must(may_give_up || is_open(me), handshake_completes);
        must(may_give_up || state[me] != ESTABLISHED, ends_agree);
        must(may_give_up || state[me] <= ESTABLISHED, shutdown_completes);
        close(false)
    :: else ->
        if :: !mutated(timers_keep_their_path) -> way[me] = 1 - way[me] :: else fi;
        if
        :: state[me] == COOKIE_WAIT -> send_init()
        :: state[me] == COOKIE_ECHOED -> send_cookie_echo()
        :: state[me] == SHUTDOWN_SENT -> put(way[me], SHUTDOWN, peer[me], 0, got[me], 0, 0, 0)
        :: state[me] == SHUTDOWN_ACK_SENT -> put(way[me], SHUTDOWN_ACK, peer[me], 0, 0, 0, 0, 0)
        :: is_open(me) && state[me] != SHUTDOWN_SENT && state[me] != SHUTDOWN_ACK_SENT &&
                data[me] == IN_FLIGHT -> send_data()
        :: state[me] == ESTABLISHED && data[me] != IN_FLIGHT ->
            put(way[me], HEARTBEAT, peer[me], 0, 0, 0, 0, 0)
        fi
    fi;
    note_transition(TIMER)
}

/* ---- After each event ---- */

inline end() {
    go_on();
    must(!match || state[me] != SHUTDOWN_RECEIVED || state[other] == SHUTDOWN_SENT, states_fit);
    must(!match || state[me] != SHUTDOWN_ACK_SENT ||
        state[other] == SHUTDOWN_SENT || state[other] == SHUTDOWN_ACK_SENT, states_fit);
    must(!(quiet && is_at_rest(0) && is_at_rest(1)) ||
        ((state[0] == CLOSED || state[0] == ESTABLISHED) &&
         (state[1] == CLOSED || state[1] == ESTABLISHED)), nobody_waits_for_ever);
    if
    :: agreed ->
        must((open_tag[0] == tag[0]) == (open_tag[1] == tag[1]), restart_renews_tags);
        open_tag[0] = tag[0]; open_tag[1] = tag[1]
    :: else
    fi;
    must(!agreed || !quiet || (rx[0] == peer[0] && rx[1] == peer[1]), tsns_agree);
    must(!is_calm || !(asked[0] || asked[1]) || !(quiet && is_at_rest(0) && is_at_rest(1)) ||
        (state[0] == CLOSED && state[1] == CLOSED && graceful[0] && graceful[1]),
        shutdown_is_graceful);
    /* Equal states are to be equal. */
    chunk = 0; v = 0; t = 0; o = 0; p = 0; t_o = 0; t_p = 0; on = 0; is_mine = 0; is_reflected = 0;
    from = 0; from_tag = 0; from_peer = 0; by_tag = 0; had_agreed = 0; fresh = 0; cause = 0
}

proctype End(bit me)
{
    /* The packet that is handled, the path that it came on, and its tag. */
    byte chunk, v, o, p, t_o, t_p;
    bit t, on, is_mine, is_reflected;
    /* Facts before the event. */
    byte from, from_tag, from_peer, by_tag, cause, fresh;
    bit had_agreed;

end_of_run:
    do
    /* A packet arrives, or its duplicate does. */
    :: atomic {
        len(wire[2 * me]) + len(wire[2 * me + 1]) > 0 ->
        if
        :: len(wire[2 * me]) > 0 -> on = 0
        :: len(wire[2 * me + 1]) > 0 -> on = 1
        fi;
        if
        :: wire[2 * me + on] ? chunk, v, t, o, p, t_o, t_p
        :: duplicates > 0 -> duplicates--; wire[2 * me + on] ? <chunk, v, t, o, p, t_o, t_p>
        fi;
        receive();
        end()
    }
    /* A timer expires. Those of both ends back off alike. */
    :: atomic {
        (is_timed(me) || is_doubtful(me)) &&
            ((quiet && (!is_timed(other) || tries[me] <= tries[other])) ||
             (!quiet && early > 0 && is_timed(me))) ->
        if :: quiet :: else -> early-- fi;
        expire();
        end()
    }
    /* The other path is verified. */
    :: atomic {
        is_open(me) && probes > 0 ->
        probes--;
        put(1 - way[me], HEARTBEAT, peer[me], 0, 0, 0, 0, 0)
    }
    /* The application. */
    :: atomic {
        state[me] == CLOSED && connects[me] > 0 ->
        connects[me]--; begin(); draw_tag(); note_used(fresh);
        state[me] = COOKIE_WAIT; tag[me] = fresh;
        if :: way[me] = 0 :: way[me] = 1 fi;
        send_init();
        note_transition(ASSOCIATE);
        end()
    }
    :: atomic {
        state[me] == ESTABLISHED && shutdowns[me] > 0 ->
        shutdowns[me]--; begin();
        state[me] = SHUTDOWN_PENDING; asked[me] = 1;
        note_transition(CALL_SHUTDOWN);
        end()
    }
    :: atomic {
        state[me] != CLOSED && aborts[me] > 0 ->
        aborts[me]--; begin();
        if :: peer[me] -> put(way[me], ABORT, peer[me], 0, 0, 0, 0, 0) :: else fi;
        close(false);
        note_transition(CALL_ABORT);
        end()
    }
    /* The host loses all its state. */
    :: atomic {
        state[me] != CLOSED && restarts[me] > 0 ->
        restarts[me]--; begin();
        close(false);
        first_tag[me] = next_tag[me]; newest_tag[me] = 0; shut_tag[me] = 0;
        note_transition(RESTART);
        end()
    }
    od
}

/* Loses packets, lets paths fail, and forges packets. */
proctype Network()
{
    byte number, chunk;
    bit t;

end_of_run:
    do
    :: atomic {
        losses > 0 && !quiet ->
        if
        :: len(wire[0]) > 0 -> wire[0] ? _, _, _, _, _, _, _
        :: len(wire[1]) > 0 -> wire[1] ? _, _, _, _, _, _, _
        :: len(wire[2]) > 0 -> wire[2] ? _, _, _, _, _, _, _
        :: len(wire[3]) > 0 -> wire[3] ? _, _, _, _, _, _, _
        fi;
        losses--
    }
    :: atomic {
        failing > 0 ->
        if :: number = 0 :: number = 1 fi;
        up[number] = 0; failing--;
        do
        :: len(wire[number]) > 0 -> wire[number] ? _, _, _, _, _, _, _
        :: len(wire[2 + number]) > 0 -> wire[2 + number] ? _, _, _, _, _, _, _
        :: else -> break
        od;
        number = 0
    }
    :: atomic {
        forgeries > 0 ->
        forgeries--;
        select(number : 0 .. 3);
        select(chunk : INIT .. HEARTBEAT_ACK);
        if :: t = 0 :: t = 1 fi;
        wire[number] ! chunk, (chunk == INIT -> 0 : FORGED), t,
            (chunk == COOKIE_ECHO -> 0 : FORGED), FORGED, 0, 0;
        number = 0; chunk = 0; t = 0
    }
    od
}

init {
    atomic {
        next_tag[0] = FIRST_TAG(0); next_tag[1] = FIRST_TAG(1);
        first_tag[0] = FIRST_TAG(0); first_tag[1] = FIRST_TAG(1);
        c_code {
            now.connects[0] = bound("CONNECTS_A", 1);   /* associations that A begins */
            now.connects[1] = bound("CONNECTS_Z", 0);
            now.messages[0] = bound("DATA_A", 0);       /* associations in which A has a message */
            now.messages[1] = bound("DATA_Z", 0);
            now.shutdowns[0] = bound("SHUTDOWNS_A", 0); /* calls of the primitive SHUTDOWN */
            now.shutdowns[1] = bound("SHUTDOWNS_Z", 0);
            now.aborts[0] = bound("ABORTS_A", 0);       /* calls of the primitive ABORT */
            now.aborts[1] = bound("ABORTS_Z", 0);
            now.restarts[0] = bound("RESTARTS_A", 0);   /* losses of all state */
            now.restarts[1] = bound("RESTARTS_Z", 0);
            now.losses = bound("LOSSES", 0);            /* packets lost */
            now.duplicates = bound("DUPLICATES", 0);    /* packets delivered a second time */
            now.early = bound("EARLY", 0);              /* timers that expire too soon */
            now.stale = bound("STALE", 0);              /* cookies that expire */
            now.failing = bound("FAILING_PATHS", 0);    /* paths that fail for good */
            now.forgeries = bound("FORGERIES", 0);      /* packets of an attacker */
            now.refusals = bound("REFUSALS", 0);        /* INITs that list new addresses */
            now.probes = bound("PROBES", 0);            /* HEARTBEATs that verify a path (§5.4) */
            accepts_a = bound("ACCEPTS_A", 0);
            limit = bound("LIMIT", 4);
            may_fail = bound("MAY_FAIL", 0);
            mutation = bound("MUTATION", 0);
            handshake_completes = is_left_out("handshake_completes");
            ends_agree = is_left_out("ends_agree");
            shutdown_completes = is_left_out("shutdown_completes");
            shutdown_is_graceful = is_left_out("shutdown_is_graceful");
            shutdown_loses_no_data = is_left_out("shutdown_loses_no_data");
            restart_renews_tags = is_left_out("restart_renews_tags");
            old_cookie_moves_nothing = is_left_out("old_cookie_moves_nothing");
            forgery_moves_nothing = is_left_out("forgery_moves_nothing");
            tag_is_used_once = is_left_out("tag_is_used_once");
            states_fit = is_left_out("states_fit");
            nobody_waits_for_ever = is_left_out("nobody_waits_for_ever");
            tsns_agree = is_left_out("tsns_agree");
            is_calm = !may_fail && now.connects[0] == 1 && now.connects[1] == 0 &&
                now.aborts[0] + now.aborts[1] + now.restarts[0] + now.restarts[1] == 0;
        };
        run End(0); run End(1); run Network()
    }
}
