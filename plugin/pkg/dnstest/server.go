package dnstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// attempts bounds how many UDP ports are tried until the TCP port of the same number is free, too.
	attempts = 16
	// grace is how long Close waits for handlers that still run.
	grace = 2 * time.Second
	// udpSize is how long a query over UDP may be, in octets.
	udpSize = 4096
)

// Server answers DNS queries over UDP and TCP on one random port of 127.0.0.1.
type Server struct {
	// Addr is where the server listens, as HOST:PORT.
	Addr string

	servers [2]*dns.Server
	running sync.WaitGroup // the goroutines that serve
}

// NewServer starts a server whose handler is f, and registers f for all names with miekg/dns's global multiplexer. All
// servers made by NewServer answer from that one, so the last f is everybody's; NewMultipleServer makes servers that
// stay strangers. It panics if it cannot listen.
func NewServer(f dns.HandlerFunc) *Server {
	dns.HandleFunc(".", f)
	return start(dns.DefaultServeMux)
}

// NewMultipleServer starts a server that alone answers with f, for any number of them in one test. It panics if it cannot
// listen.
func NewMultipleServer(f dns.HandlerFunc) *Server { return start(f) }

// Close stops the server. It waits for the handlers that run, but not for ever. Closing twice does no harm.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stopped := true
	for _, server := range s.servers {
		// The only other error is that the server was closed already.
		if errors.Is(server.ShutdownContext(ctx), context.DeadlineExceeded) {
			stopped = false
		}
	}
	if stopped {
		s.running.Wait()
	}
}

// start listens, serves, and returns once both sockets are served.
func start(h dns.Handler) *Server {
	conn, listener, err := listen()
	if err != nil {
		panic(fmt.Sprintf("dnstest: starting a server: %v", err))
	}
	s := &Server{
		Addr: conn.LocalAddr().String(),
		servers: [2]*dns.Server{
			{PacketConn: conn, UDPSize: udpSize, Handler: h},
			{Listener: listener, Handler: h},
		},
	}
	var started sync.WaitGroup
	for _, server := range s.servers {
		started.Add(1)
		server.NotifyStartedFunc = started.Done
		// An error of a running server shows in the test as a query without an answer.
		s.running.Go(func() { _ = server.ActivateAndServe() })
	}
	started.Wait()
	return s
}

// listen opens a UDP and a TCP socket with the same port number.
func listen() (net.PacketConn, net.Listener, error) {
	var last error
	for range attempts {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		listener, err := net.Listen("tcp", conn.LocalAddr().String())
		if err == nil {
			return conn, listener, nil
		}
		_ = conn.Close() // somebody else has the TCP port
		last = err
	}
	return nil, nil, last
}
