// Package loopback finds ports of 127.0.0.1 for tests and benchmarks: for servers that listen over UDP and TCP on one
// port, for programs that are told their port, and for addresses where nobody is to listen. Folder is for unix sockets.
//
// The system gives the ports of its own range to every socket that asks for any, connecting ones included; one that
// it chose and that was closed may be somebody's before it is bound again. So the ports of this package lie below
// that range. Start at Listen.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

const (
	host = "127.0.0.1"
	// lowest is the first port that is given: those below are of daemons.
	lowest = 10240
	// systems is where the system's own range begins if it does not say so; Linux has it there.
	systems = 32768
	// few ports are not worth having for oneself: the system chooses then.
	few = 1000
	// attempts bounds how many ports are tried until one is free.
	attempts = 200
)

var errNone = errors.New("loopback: no port is free for both UDP and TCP")

// ports are given one after the other, from a random one on, so that none comes twice soon, here or in another process.
type ports struct {
	end   int // the first that is not given
	begin uint32
	given atomic.Uint32
}

var own = ports{end: systemRange(), begin: rand.Uint32()}

// systemRange is the first port of those that the system gives to sockets that ask for any.
func systemRange() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return systems
	}
	var low, high int
	if _, err := fmt.Sscan(string(b), &low, &high); err != nil {
		return systems
	}
	return low
}

// next is the port to try, 0 for any.
func (p *ports) next() int {
	if p.end-lowest < few {
		return 0
	}
	return lowest + int((p.begin+p.given.Add(1))%uint32(p.end-lowest))
}

func (p *ports) listen() (net.PacketConn, net.Listener, error) {
	for range attempts {
		conn, err := net.ListenPacket("udp", net.JoinHostPort(host, strconv.Itoa(p.next())))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", conn.LocalAddr().String())
		if err == nil {
			return conn, l, nil
		}
		_ = conn.Close() // somebody else has the TCP port
	}
	return nil, nil, errNone
}

// Listen opens a UDP and a TCP socket of 127.0.0.1 with the same port.
func Listen() (net.PacketConn, net.Listener, error) { return own.listen() }

// Port is a port of 127.0.0.1 that nobody uses, over UDP or TCP. It panics if there is none.
func Port() int {
	conn, l, err := Listen()
	if err != nil {
		panic(err)
	}
	_, _ = conn.Close(), l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Addr is 127.0.0.1:PORT, with a port as Port has it.
func Addr() string { return net.JoinHostPort(host, strconv.Itoa(Port())) }

// To is where a listener on all addresses, at addr, is reached: its port of 127.0.0.1.
func To(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return net.JoinHostPort(host, port)
}

// HasIPv6 reports whether this machine has ::1.
func HasIPv6() bool {
	p, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		return false
	}
	_ = p.Close()
	return true
}
