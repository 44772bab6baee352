package dnsserver

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/chain"
	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/udp"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
)

// Server serves the blocks that share a listen address. It is also the kind of
// server for plain DNS over UDP and TCP, and the heart of all other kinds.
type Server struct {
	// Addr is the address as the Corefile configures it, with its scheme: dns://:53.
	Addr string

	IdleTimeout   time.Duration // until each further query of a connection
	ReadTimeout   time.Duration // until the first query of a connection
	WriteTimeout  time.Duration // to write a reply
	MaxTCPQueries int           // queries of a connection, -1 any number

	configs    []*Config // in file order
	chain      *chain.Chain
	finish     *reply.Finisher
	tracing    tracing // a plugin that has a tracer, nil if there is none
	debug      bool    // does not recover from panics
	limits     limits
	proto      any          // what the protocol's own package wants to know; see service.Service
	saturated  atomic.Int32 // sockets with as many unsent replies as there may be; see Shed
	others     bool         // of another process listen at the UDP address
	grace      time.Duration
	nth        int // of the servers of its group, from 0; the first one lists the zones
	link       int // the interface of the address; see linkOf
	generation *generation

	made    sync.Once
	serves  *service.Service // what transports know, made at the first use: programs set the times above before
	leaving atomic.Bool      // the process is to end, and another one may serve at the same addresses

	mu          sync.Mutex
	predecessor *Server                // whose transports may be taken over
	running     []service.Transport    // those of this server
	passed      []service.Heirloom     // those that the next one has taken over
	spare       []io.Closer            // sockets given to this server that it does not need; see keep
	packet      net.PacketConn         // opened by Listen, for ListenPacket; nil when that has it
	proxied     *proxyproto.PacketConn // what ServePacket reads, if there are PROXY headers
	stopped     bool
	stopErr     error
	stopOnce    sync.Once
	telling     sync.Once
	told        chan struct{} // closed when Stop is called
	drained     chan struct{} // closed when drain is over
}

// WireLane says whether Servers made from now on serve queries as bytes where the plugins of a block can do that.
// Without it, all take the message lane, which gives the same answers: it is for finding faults.
var WireLane = true

// NewServer is a Server for the blocks of group, at addr (dns://:53). It opens no socket.
func NewServer(addr string, group []*Config) (*Server, error) {
	s := &Server{
		Addr:          addr,
		IdleTimeout:   DefaultIdleTimeout,
		ReadTimeout:   DefaultReadTimeout,
		WriteTimeout:  DefaultWriteTimeout,
		MaxTCPQueries: DefaultTCPQueries,
		configs:       group,
		grace:         DefaultGraceTime,
		link:          linkOf(addr),
	}
	s.told, s.drained = make(chan struct{}), make(chan struct{})
	trans, _, _ := strings.Cut(addr, "://")
	s.limits = limitsOf(trans, group)
	stacktrace := false
	secrets, rings := map[string]string(nil), []*keyring.Ring(nil)
	for _, cfg := range group {
		s.configure(cfg)
		stacktrace = cfg.Stacktrace
		if secrets == nil && cfg.TsigSecret != nil { // even if there are none: then no signature is good
			secrets = map[string]string{}
		}
		for name, secret := range cfg.TsigSecret {
			secrets[name] = secret
		}
		if cfg.TsigKeys != nil {
			rings = append(rings, cfg.TsigKeys)
		}
	}
	s.finish = finisherOf(trans, s.IdleTimeout, cookiesOf(group), secrets)
	s.finish.Keyrings = rings
	return s, s.buildChain(chain.Options{Self: s, Label: s.Addr, Debug: s.debug, Stacktrace: stacktrace, Finish: s.finish})
}

// configure takes over what a block configures for its listener.
func (s *Server) configure(cfg *Config) {
	if cfg.Debug {
		s.debug = true
		log.D.Set()
	}
	if cfg.ReadTimeout != 0 {
		s.ReadTimeout = cfg.ReadTimeout
	}
	if cfg.WriteTimeout != 0 {
		s.WriteTimeout = cfg.WriteTimeout
	}
	if cfg.IdleTimeout != 0 {
		s.IdleTimeout = cfg.IdleTimeout
	}
	if cfg.MaxTCPQueries != nil {
		s.MaxTCPQueries = *cfg.MaxTCPQueries
	}
}

// finisherOf is what ends the replies of a listener with the scheme trans.
func finisherOf(trans string, idle time.Duration, cookies *cookie.Ring, secrets map[string]string) *reply.Finisher {
	f := &reply.Finisher{Cookies: cookies, Secrets: secrets, Pad: trans != transport.DNS && trans != ""}
	switch trans {
	case transport.DNS, transport.TLS, "":
		f.Keepalive = uint16(min(math.MaxUint16, idle/(100*time.Millisecond)))
	case transport.QUIC, transport.HTTPS3:
		f.AnySize = true
	}
	return f
}

// buildChain makes the chains of all blocks, and enters their handlers into the blocks' registries.
func (s *Server) buildChain(o chain.Options) (err error) {
	blocks := make([]chain.Block, len(s.configs))
	for i, cfg := range s.configs {
		blocks[i] = chain.Block{Zone: cfg.Zone, Plugins: cfg.Plugin, Filters: &cfg.FilterFuncs, View: &cfg.ViewName, Opcodes: cfg.opcodes}
	}
	if s.chain, err = chain.Build(o, blocks); err != nil {
		return err
	}
	for i, cfg := range s.configs {
		cfg.chain = s.chain.Handlers(i)
		cfg.handlers = make(map[string]plugin.Handler, len(cfg.chain))
		for j := len(cfg.chain) - 1; j >= 0; j-- {
			h := cfg.chain[j]
			cfg.handlers[h.Name()] = h
			if _, ok := EnableChaos[h.Name()]; ok {
				s.chain.Classes = true
			}
			if t, ok := h.(tracing); ok && s.tracing == nil {
				s.tracing = t
			}
		}
	}
	return nil
}

// service is the server as its transports see it.
func (s *Server) service() *service.Service {
	s.made.Do(func() {
		s.serves = &service.Service{
			Decider: s.chain, Label: s.Addr, Wire: WireLane && s.chain.Wire(), Debug: s.debug, Limits: s.limits.Limits, Opcodes: s.chain.Opcodes(),
			Read: s.ReadTimeout, Write: s.WriteTimeout, Idle: s.IdleTimeout, Queries: s.MaxTCPQueries,
			Finish: s.finish, Proto: s.proto,
		}
	})
	return s.serves
}

// ServeDNS leads a query to the block that it belongs to and writes a reply to w: the
// chain's, or an error reply. Plugins call it, through upstream.Lookup, for questions of their own.
func (s *Server) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) {
	s.chain.ServeDNS(ctx, w, r)
}

// AsSent is a copy of m, a reply to req, as the client at the other end of w gets it: with an OPT record if it sent
// one, and cut to its size. m is not changed. It is for plugins in the message lane that tell others what was sent;
// padding and the like of a transport's own are left out.
func (s *Server) AsSent(m, req *dns.Msg, w dns.ResponseWriter) *dns.Msg {
	return s.finisher().AsSent(m, req, w)
}

// AppendSent is AsSent for the wire lane: it appends to b what the client gets of the reply that w holds for q.
func (s *Server) AppendSent(b []byte, w *wire.Reply, q *wire.Query) []byte {
	return s.finisher().AppendSent(b, w, q)
}

func (s *Server) finisher() *reply.Finisher {
	if s.finish != nil {
		return s.finish
	}
	trans, _, _ := strings.Cut(s.Addr, "://") // made as a value, without NewServer
	return finisherOf(trans, s.IdleTimeout, nil, nil)
}

// Label is Addr, as metrics have it.
func (s *Server) Label() string { return s.Addr }

func (s *Server) base() *Server { return s }

// tracing is a plugin that has a tracer, as trace.Trace. It may not have one before its OnStartup.
type tracing interface{ Tracer() ot.Tracer }

// Tracer is the tracer of the first trace plugin of the listener, nil if there is none, or none yet.
func (s *Server) Tracer() ot.Tracer {
	if s.tracing == nil {
		return nil
	}
	return s.tracing.Tracer()
}

// start notes a transport at work. It reports false if the server was stopped already.
func (s *Server) start(t service.Transport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.limits.enforce()
	if s.generation == nil {
		s.countFromZero()
	}
	s.running = append(s.running, t)
	return true
}

// keep keeps a socket that the server does not need open until it is stopped: a reload makes another descriptor of it.
func (s *Server) keep(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, c)
}

// countFromZero makes the counters whose labels are known: who watches them sees the first step, too. It is called
// before anybody is told that the server has started, and for those without a generation when they serve.
func (s *Server) countFromZero() {
	service.CountFromZero(s.Addr)
	if s.sheds() {
		udp.CountShedFromZero(s.Addr)
	}
	if s.readsProxyHeaders() {
		conn.Refusals(s.Addr).CountFromZero()
	}
}

func (s *Server) setPredecessor(before *Server) {
	s.mu.Lock()
	s.predecessor = before
	s.mu.Unlock()
}

func (s *Server) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// isTold reports whether Stop has been called. What it begins may take its time on a machine that is busy.
func (s *Server) isTold() bool {
	select {
	case <-s.told:
		return true
	default:
		return false
	}
}

// Address is Addr, with a number for further servers there; with it a reload pairs old and new servers, and so does
// another process that takes over (SIGUSR2): one of the old and one of the new ones have it. A socket of a link-local
// address is that of an interface, and of no other one with the same name.
func (s *Server) Address() string { return addressOf(s.Addr, s.link, s.nth) }

func addressOf(addr string, link, nth int) string {
	if link != 0 {
		addr = fmt.Sprintf("%s,%d", addr, link)
	}
	if nth == 0 {
		return addr
	}
	return fmt.Sprintf("%s#%d", addr, nth+1)
}

// linkOf is the number of the interface of a link-local address, 0 for others. An interface that goes away and comes
// back has another number, and nothing reaches the sockets of the former one.
func linkOf(addr string) int {
	_, zone, _ := strings.Cut(addr, "%")
	zone, _, _ = strings.Cut(zone, "]")
	if i, err := net.InterfaceByName(zone); err == nil {
		return i.Index
	}
	return 0
}
