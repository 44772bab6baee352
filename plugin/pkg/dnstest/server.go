package dnstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

const (
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

// NewMultipleServer starts a server that alone answers with f, for any number of them in one test. It panics if it
// cannot listen.
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
	conn, listener, err := loopback.Listen()
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
