# One file over two paths of three hops with SCTP/CMT, in ns-2: the counterpart of the simulator's example "bulk".
#
#   ns transfer.tcl -bytes N [-loss1 P] [-loss2 P] [-seed N] [-observe 0|1] [-until SECONDS]
#
# With -observe 1 (the default) it records the fields of our result object by observers of packets, stops when the last
# SACK has arrived, and prints one line of "name=value". With -observe 0 nothing is watched until one second before
# -until; what is seen from then on shows how far the transfer has come. ns-2 cannot tell by itself when it is done.

array set opt {-bytes 8000000 -loss1 0 -loss2 0 -seed 1 -observe 1 -until 100000}
foreach {name value} $argv {
    if {![info exists opt($name)]} { puts stderr "unknown option $name; known: [array names opt]"; exit 2 }
    set opt($name) $value
}
set mtu 1500
set payload 1452                 ;# of a full DATA chunk: MTU less 20 (IP), 12 (common header), 16 (chunk header)
set begin 0.5                    ;# when the application sends
set chunks [expr {($opt(-bytes) + $payload - 1) / $payload}]

set sim [new Simulator]
remove-all-packet-headers
add-packet-header IP SCTP Flags
Trace set show_sctphdr_ 1
# Neighbouring seeds begin with nearly equal draws: spread them, and skip the beginning.
ns-random [expr {($opt(-seed) * 48271 + 11) % 2147483647}]
for {set i 0} {$i < 1000} {incr i} { ns-random }

# ---- Topology: left -- in -- out -- right for each path, a multihomed host at both ends ----

set near [$sim node]
set far [$sim node]
foreach path {1 2} {
    foreach place {left in out right} { set at($path,$place) [$sim node] }
    $sim multihome-add-interface $near $at($path,left)
    $sim multihome-add-interface $far $at($path,right)
    foreach {from to rate delay} {left in 100Mb 10ms in out 10Mb 25ms out right 100Mb 10ms} {
        $sim duplex-link $at($path,$from) $at($path,$to) $rate $delay DropTail
        $sim queue-limit $at($path,$from) $at($path,$to) 75
        $sim queue-limit $at($path,$to) $at($path,$from) 75
    }
    foreach {from to} {in out out in} {
        if {$opt(-loss$path) > 0} {
            set model [new ErrorModel]
            $model unit pkt
            $model set rate_ $opt(-loss$path)
            $model ranvar [new RandomVariable/Uniform]
            $sim lossmodel $model $at($path,$from) $at($path,$to)
            if {$opt(-observe) && $from eq "in"} { set losses($path) $model }
        }
    }
}

# ---- Agents: as in the CMT paper (RFC 2960 constants, 64 KiB receive buffer, RTX-CWND) ----

foreach name {sender receiver} {
    set $name [new Agent/SCTP/CMT]
    foreach {key value} [list mtu_ $mtu dataChunkSize_ [expr {$payload + 16}] numOutStreams_ 1 initialRwnd_ 65536 \
            initialCwnd_ 2 initialSsthresh_ 65536 fastRtxTrigger_ 4 useDelayedSacks_ 1 useMaxBurst_ 1 pathMaxRetrans_ 5 \
            associationMaxRetrans_ 10 heartbeatInterval_ 30 minRto_ 1.0 initialRto_ 3.0 maxRto_ 60.0 \
            useCmtReordering_ 1 useCmtCwnd_ 1 useCmtDelAck_ 1 eCmtRtxPolicy_ 4 useCmtPF_ 0 \
            debugMask_ 0 debugFileIndex_ -1] {
        [set $name] set $key $value
    }
}
$sim multihome-attach-agent $near $sender
$sim multihome-attach-agent $far $receiver

# ---- Observers: ns-2 calls "handle" with a line per chunk ----

set next 1                       ;# the TSN that the receiver waits for
set acked 0
set duplicates 0
set longest 0.0
set last -1
set first -1
set started -1
set highest 0
foreach path {1 2} {
    foreach field {packets bytes data again beats dropped} { set count($path,$field) 0 }
}

Class Watch/Sent -superclass Trace/Enque
Watch/Sent instproc handle line {
    global count seen started highest
    set path [$self set path]
    incr count($path,packets)
    incr count($path,bytes) [lindex $line 5]
    switch -- [string index [lindex $line 6] end] {
        D {
            incr count($path,data)
            set tsn [lindex $line 11]
            if {[info exists seen($tsn)]} { incr count($path,again) } else { set seen($tsn) 1 }
            if {$started < 0} { set started [lindex $line 1] }
            if {$tsn > $highest} { set highest $tsn }
        }
        H { incr count($path,beats) }
    }
}

Class Watch/Arrived -superclass Trace/Recv
Watch/Arrived instproc handle line {
    global next early duplicates longest last first
    if {[string index [lindex $line 6] end] ne "D"} return
    set tsn [lindex $line 11]
    if {$tsn < $next || [info exists early($tsn)]} { incr duplicates; return }
    set early($tsn) 1
    if {$tsn != $next} return
    set now [lindex $line 1]
    while {[info exists early($next)]} { unset early($next); incr next }
    if {$first < 0} { set first $now } elseif {$now - $last > $longest} { set longest [expr {$now - $last}] }
    set last $now
}

Class Watch/Acked -superclass Trace/Recv
Watch/Acked instproc handle line {
    global acked chunks
    if {[string index [lindex $line 6] end] ne "S"} return
    set tsn [lindex $line 11]
    if {$tsn > $acked} {
        set acked $tsn
        if {$tsn >= $chunks} { finish 1 }
    }
}

Class Watch/Dropped -superclass Trace/Drop
Watch/Dropped instproc handle line {
    global count
    incr count([$self set path],dropped)
}

proc watcher {class path from to} {
    set watch [new $class]
    $watch set path $path
    $watch set callback_ 1
    $watch set src_ [$from id]
    $watch set dst_ [$to id]
    return $watch
}

# Calls "class" with what leaves the link between the two nodes.
proc watch_end {class path from to} {
    global sim
    set watch [watcher $class $path $from $to]
    set ttl [[$sim link $from $to] set ttl_]
    $watch target [$ttl target]
    $ttl target $watch
}

proc observe {} {
    global sim at losses
    foreach path {1 2} {
        [$sim link $at($path,left) $at($path,in)] add-to-head [watcher Watch/Sent $path $at($path,left) $at($path,in)]
        watch_end Watch/Arrived $path $at($path,out) $at($path,right)
        watch_end Watch/Acked $path $at($path,in) $at($path,left)
        if {[info exists losses($path)]} {
            set watch [watcher Watch/Dropped $path $at($path,in) $at($path,out)]
            $watch target [$sim set nullAgent_]
            $losses($path) drop-target $watch
        }
    }
}

proc finish complete {
    global opt begin chunks count acked duplicates longest last first started highest sender
    set line "complete=$complete chunks=$chunks acked=$acked highest_tsn=$highest end_s=[[Simulator instance] now]"
    if {$opt(-observe)} {
        append line " begin_s=$begin started_s=$started first_s=$first last_s=$last max_delivery_gap_s=$longest"
        append line " duplicates=$duplicates timeouts=[$sender set timeoutCount_] fast_retransmits=[$sender set frCount_]"
        foreach key [lsort [array names count]] { append line " path[string map {, _} $key]=$count($key)" }
    }
    puts $line
    exit 0
}

if {$opt(-observe)} { observe } else { $sim at [expr {$opt(-until) - 1}] observe }
$sim connect $sender $receiver
$sender set-primary-destination $at(1,right)
set application [new Application/FTP]
$application attach-agent $sender
$sim at $begin "$application send $opt(-bytes)"
$sim at $opt(-until) "finish 0"
$sim run
