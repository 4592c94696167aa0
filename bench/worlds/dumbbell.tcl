# N flows of TCP (SACK) over a dumbbell, in ns-2: the counterpart of dumbbell.toml.
#
#   ns dumbbell.tcl -flows N -until SECONDS
#
# All agents are at two nodes, since ns-2 computes the routes between all nodes beforehand: with a thousand hosts that
# took more than five minutes. The bottleneck has 1 Mbit/s for each flow and a queue of one bandwidth-delay product.
# Nothing is traced. Prints the bytes that the sinks have received.

array set opt {-flows 10 -until 20}
foreach {name value} $argv { set opt($name) $value }
set n $opt(-flows)
set sim [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags
ns-random 1
set near [$sim node]
set far [$sim node]
$sim duplex-link $near $far ${n}Mb 40ms DropTail
set queue [expr {int(ceil($n * 1e6 * 0.102 / 8 / 1500)) + 1}]
if {$queue < 50} { set queue 50 }
set a [$sim node]
set z [$sim node]
$sim duplex-link $a $near 100Gb 10ms DropTail
$sim duplex-link $far $z 100Gb 1ms DropTail
$sim queue-limit $a $near 100000
$sim queue-limit $z $far 100000
$sim queue-limit $near $far $queue
$sim queue-limit $far $near $queue
for {set i 0} {$i < $n} {incr i} {
    set tcp [new Agent/TCP/Sack1]
    $tcp set packetSize_ 1460
    $tcp set window_ 170
    set sink($i) [new Agent/TCPSink/Sack1/DelAck]
    $sim attach-agent $a $tcp
    $sim attach-agent $z $sink($i)
    $sim connect $tcp $sink($i)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $sim at [expr {2.0 * $i / $n}] "$ftp start"
}
$sim at $opt(-until) {
    set bytes 0
    for {set i 0} {$i < $n} {incr i} { incr bytes [expr {int([$sink($i) set bytes_])}] }
    puts "bytes=$bytes"
    exit 0
}
$sim run
