package dnsserver

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

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
	blocks     []*block  // the same with their chains
	router     *router
	wire       bool // queries may take the wire lane
	tracer     ot.Tracer
	tsigSecret map[string]string
	classes    bool // takes queries of other classes than IN
	debug      bool // does not recover from panics
	limits     limits
	tempo      tempo // of the message lane
	extras     extras
	cookies    *cookie.Ring // nil if cookies are not answered
	fullStacks stackCount   // see Shed
	stacktrace bool
	grace      time.Duration
	unlisted   bool // another server lists the same zones
	attempt    *attempt

	mu       sync.Mutex
	running  []stopper
	stopped  bool
	stopErr  error
	stopOnce sync.Once
}

// stopper is a transport at work. stop makes it take no more queries, waits for those
// in flight until ctx ends, and closes its socket.
type stopper interface {
	stop(ctx context.Context) error
}

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
	}
	trans, _, _ := strings.Cut(addr, "://")
	s.limits = limitsOf(trans, group)
	for _, cfg := range group {
		s.configure(cfg)
		b := newBlock(s, cfg)
		s.blocks = append(s.blocks, b)
		for name, h := range cfg.handlers {
			if _, ok := EnableChaos[name]; ok {
				s.classes = true
			}
			if t, ok := h.(interface{ Tracer() ot.Tracer }); ok && s.tracer == nil {
				s.tracer = t.Tracer()
			}
		}
	}
	s.wire = WireLane && anyWire(s.blocks)
	s.extras = extrasOf(trans, s.IdleTimeout)
	s.cookies = cookiesOf(group)
	var err error
	s.router, err = newRouter(s.blocks)
	return s, err
}

// configure takes over what a block configures for its listener.
func (s *Server) configure(cfg *Config) {
	if cfg.Debug {
		s.debug = true
		log.D.Set()
	}
	s.stacktrace = cfg.Stacktrace
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
	for name, secret := range cfg.TsigSecret {
		if s.tsigSecret == nil {
			s.tsigSecret = map[string]string{}
		}
		s.tsigSecret[name] = secret
	}
}

func (s *Server) base() *Server { return s }

// Tracer is the tracer of the first trace plugin of the listener, nil if there is none.
func (s *Server) Tracer() ot.Tracer { return s.tracer }

// ServeDNS leads a query to the block that it belongs to and writes a reply to w: the
// chain's, or an error reply. Plugins call it, through upstream.Lookup, for questions of their own.
func (s *Server) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) {
	run := &struct { // one piece of memory
		ctx    queryContext
		writer chainWriter
	}{ctx: queryContext{Context: ctx, server: s}}
	q, cw := &run.ctx, &run.writer
	*cw = chainWriter{ResponseWriter: w, ctx: q, req: r}
	if r == nil || len(r.Question) == 0 {
		s.refuse(cw, r, dns.RcodeServerFailure)
		return
	}
	if !s.debug {
		defer func() {
			if v := recover(); v != nil {
				s.recovered(v)
				s.answer(cw, r, dns.RcodeServerFailure, nil)
			}
		}()
	}
	if severalOPT(r) {
		s.refuse(cw, r, dns.RcodeFormatError)
		return
	}
	if r.Question[0].Qclass != dns.ClassINET && !s.classes {
		s.refuse(cw, r, dns.RcodeRefused)
		return
	}
	if m, err := edns.Version(r); err != nil {
		w.WriteMsg(m)
		report(s, w, r, dns.RcodeBadVers, m)
		return
	}
	if s.misfit(r) {
		s.refuse(cw, r, dns.RcodeFormatError)
		return
	}
	b, chainCtx := s.find(q, cw, r)
	if b == nil || b.head == nil {
		s.refuse(cw, r, dns.RcodeRefused)
		return
	}
	q.path.Enter(b.head.Name())
	rc, err := b.head.ServeDNS(chainCtx, cw, r)
	if !plugin.ClientWrite(rc) {
		s.answer(cw, r, rc, err)
	}
}

var nameSpace = sync.Pool{New: func() any { return new([wire.MaxName + 1]byte) }}

// find is the block of a query, with the context for its chain.
func (s *Server) find(q *queryContext, w dns.ResponseWriter, r *dns.Msg) (*block, context.Context) {
	buf := nameSpace.Get().(*[wire.MaxName + 1]byte)
	defer nameSpace.Put(buf)
	name, err := wire.AppendName(buf[:0], r.Question[0].Name)
	if err != nil {
		return nil, nil // no name of any zone
	}
	wire.Lower(name, name)
	var chosen context.Context
	b := s.router.route(name, r.Question[0].Qtype == dns.TypeDS, func(b *block) bool {
		var ctx context.Context = q // metadata of a block that is not chosen goes with its context
		if b.collector != nil {
			ctx = b.collector.Collect(ctx, request.Request{Req: r, W: w})
		}
		for _, f := range b.FilterFuncs {
			if !f(ctx, &request.Request{Req: r, W: w}) {
				return false
			}
		}
		chosen = ctx
		return true
	})
	if b != nil {
		q.view = b.ViewName
	}
	return b, chosen
}

// refuse answers a query that enters no chain, and counts it.
func (s *Server) refuse(w *chainWriter, r *dns.Msg, rc int) {
	if m := s.answer(w, r, rc, nil); m != nil {
		report(s, w, r, rc, m)
	}
}

// answer writes an error reply, with what err has for the client, and returns it.
func (s *Server) answer(w dns.ResponseWriter, r *dns.Msg, rc int, err error) *dns.Msg {
	if r == nil {
		return nil
	}
	m := new(dns.Msg).SetRcode(r, rc)
	if opt := optOf(r); opt != nil {
		m.Extra = append(m.Extra, opt)
	}
	explain(m, err)
	if w.WriteMsg(m) != nil {
		return nil
	}
	return m
}

// report counts a query that entered no chain.
func report(s *Server, w dns.ResponseWriter, r *dns.Msg, rc int, m *dns.Msg) {
	state := request.Request{Req: r, W: w}
	vars.Report(s.Addr, state, vars.Dropped, "", rcode.ToString(rc), "", m.Len(), time.Now())
}

func (s *Server) recovered(v any) {
	vars.Panic.Inc()
	if s.stacktrace {
		log.Errorf("Recovered from panic in server: %q %v\n%s", s.Addr, v, debug.Stack())
		return
	}
	log.Errorf("Recovered from panic in server: %q %v", s.Addr, v)
}

// start notes a transport at work. It reports false if the server was stopped already.
func (s *Server) start(t stopper) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.limits.enforce()
	if s.attempt != nil {
		s.attempt.serves()
	}
	s.running = append(s.running, t)
	return true
}

// Stop makes all transports take no more queries, waits for those in flight, for a
// grace period at most, and closes the sockets. If queries outlive it, the error is
// context.DeadlineExceeded. Further calls return what the first did.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.mu.Lock()
		s.stopped = true
		running := s.running
		s.mu.Unlock()

		ctx, cancel := context.WithTimeout(context.Background(), s.grace)
		defer cancel()
		errs := make([]error, len(running))
		var wg sync.WaitGroup
		for i, t := range running {
			wg.Go(func() { errs[i] = t.stop(ctx) })
		}
		wg.Wait()
		log.Sync() // the process may end now
		s.stopErr = errors.Join(errs...)
		if errors.Is(s.stopErr, context.DeadlineExceeded) {
			s.stopErr = context.DeadlineExceeded
		}
	})
	return s.stopErr
}

// Address is Addr; with it a reload pairs old and new servers.
func (s *Server) Address() string { return s.Addr }
