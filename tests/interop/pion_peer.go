// pion_peer plays the other end in manypath's interoperability tests with pion/sctp, the SCTP of
// WebRTC in Go, over UDP: one association whose messages it returns.
//
//	pion_peer listen|connect LOCAL REMOTE [--rexmit N] [--lifetime-ms N] [--unordered]
//
// LOCAL and REMOTE are UDP addresses with a port. Each message goes back on the stream that it came
// on, with its protocol identifier. With --rexmit and --lifetime-ms those messages are given up
// (RFC 3758). A stream that the peer resets is reset in the other direction, too (RFC 6525). It
// prints a JSON line when it listens, and one at the end. After 50 seconds it ends by itself.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	lifetime       = 50 * time.Second
	longestMessage = 1 << 20
)

type options struct {
	rexmit     int
	lifetimeMs int
	unordered  bool
}

func (o options) apply(stream *sctp.Stream) {
	switch {
	case o.rexmit >= 0:
		stream.SetReliabilityParams(o.unordered, sctp.ReliabilityTypeRexmit, uint32(o.rexmit))
	case o.lifetimeMs >= 0:
		stream.SetReliabilityParams(o.unordered, sctp.ReliabilityTypeTimed, uint32(o.lifetimeMs))
	default:
		stream.SetReliabilityParams(o.unordered, sctp.ReliabilityTypeReliable, 0)
	}
}

// report is what is printed at the end.
type report struct {
	mutex    sync.Mutex
	Event    string `json:"event"`
	Messages int    `json:"messages"`
	Bytes    int    `json:"bytes"`
	Resets   int    `json:"resets"`
	Error    string `json:"error,omitempty"`
}

func (r *report) count(bytes int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Messages++
	r.Bytes += bytes
}

func (r *report) fail(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Error = err.Error()
}

// echo returns the messages of a stream until the peer resets it, or the association is over.
func (r *report) echo(stream *sctp.Stream) {
	buffer := make([]byte, longestMessage)
	for {
		n, ppid, err := stream.ReadSCTP(buffer)
		if err == io.EOF {
			r.mutex.Lock()
			r.Resets++
			r.mutex.Unlock()
			_ = stream.Close()
			return
		}
		if err != nil {
			return
		}
		r.count(n)
		if _, err := stream.WriteSCTP(buffer[:n], ppid); err != nil {
			r.fail(err)
			return
		}
	}
}

func (r *report) run(role, local, remote string, o options) error {
	from, err := net.ResolveUDPAddr("udp", local)
	if err != nil {
		return err
	}
	to, err := net.ResolveUDPAddr("udp", remote)
	if err != nil {
		return err
	}
	socket, err := net.DialUDP("udp", from, to)
	if err != nil {
		return err
	}
	say(map[string]string{"event": "listening"})
	config := sctp.Config{NetConn: socket, LoggerFactory: logging.NewDefaultLoggerFactory()}
	open := sctp.Client
	if role == "listen" {
		open = sctp.Server
	}
	association, err := open(config)
	if err != nil {
		return err
	}
	var streams sync.WaitGroup
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			break
		}
		o.apply(stream)
		streams.Add(1)
		go func() {
			defer streams.Done()
			r.echo(stream)
		}()
	}
	streams.Wait()
	return nil
}

func say(what interface{}) {
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		os.Exit(1)
	}
}

func main() {
	var o options
	flags := flag.NewFlagSet("pion_peer", flag.ExitOnError)
	flags.IntVar(&o.rexmit, "rexmit", -1, "give messages up when they were retransmitted so often")
	flags.IntVar(&o.lifetimeMs, "lifetime-ms", -1, "give messages up after this time")
	flags.BoolVar(&o.unordered, "unordered", false, "send unordered messages")
	if len(os.Args) < 4 {
		flags.Usage()
		os.Exit(2)
	}
	_ = flags.Parse(os.Args[4:])
	time.AfterFunc(lifetime, func() { os.Exit(3) })
	r := report{Event: "end"}
	if err := r.run(os.Args[1], os.Args[2], os.Args[3], o); err != nil {
		r.fail(err)
	}
	say(&r)
}
