// Package grpcdns is the DNS service of package pb over gRPC, with the gRPC library.
//
//	conn.Admission ──▶ library ──▶ Transport.Query ──▶ exec.Serve ──▶ writer ──▶ result
//
// The library has a goroutine for each call, and its own idea of HTTP/2; all that can be bounded by its options is. The
// connections are admitted here (admit.go), so that one that is idle gives way to a new one, and its client is told
// (leave.go). Any number of goroutines may call a Transport. Start at Transport.Query; then Query, which answers one
// call for a server (query.go).
package grpcdns

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/reuseport"

	ot "github.com/opentracing/opentracing-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// maxMessage is a DNS message with the field header that the service puts before it.
const maxMessage = dns.MaxMsgSize + 4

// probe is how often a client that says nothing is asked whether it is there: its connection has no idle time, as calls
// may be far between.
const probe = time.Minute

// readSpace is how much is read at one time: idle connections take little.
const readSpace = 4096

// Transport serves the connections of one listener with the gRPC library. When a reload puts another server into
// its seat, it goes on with the connections that there are.
type Transport struct {
	service.Seat
	*pb.UnimplementedDnsServiceServer
	once      once
	admission *conn.Admission
	mostCalls int // of the process
	server    *grpc.Server
	coming    atomic.Int32 // loops that accept, and connections that the library has not seen yet

	mu       sync.Mutex
	listener net.Listener
}

// Settings is what a Service of DNS over gRPC has beside, as its Proto.
type Settings struct {
	TLS    *tls.Config
	Tracer ot.Tracer // nil if there is none
}

// once is what the library is told once.
type once struct {
	auth            conn.ClientAuth
	traced          bool
	streams, header int
	handshake       time.Duration
}

// onceOf is what the library is told of s.
func onceOf(s *service.Service) once {
	own := s.Proto.(*Settings)
	return once{
		auth: conn.ClientAuthOf(own.TLS), traced: own.Tracer != nil,
		streams: s.Streams, header: s.HeaderBytes, handshake: s.Handshake,
	}
}

// Fits reports whether t may go on with s as its server.
func (t *Transport) Fits(s *service.Service) bool {
	a, b := t.once, onceOf(s)
	auths := a.auth.Same(b.auth)
	// ClientAuth has its own idea of equal: see Same.
	a.auth, b.auth = conn.ClientAuth{}, conn.ClientAuth{}
	return auths && a == b
}

// New is a Transport for s.
func New(s *service.Service) *Transport {
	settings := onceOf(s)
	t := &Transport{once: settings, UnimplementedDnsServiceServer: new(pb.UnimplementedDnsServiceServer)}
	t.mostCalls = memory.Streams(memory.Limit())
	t.Seat.Sit(s)
	t.admission = conn.NewAdmission(&t.Seat)
	streams := uint32(math.MaxUint32)
	if settings.streams > 0 {
		streams = uint32(settings.streams)
	}
	opts := []grpc.ServerOption{
		// The length of a message is checked in Query, too, which counts it; here it keeps the library from reading
		// more.
		grpc.MaxConcurrentStreams(streams), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: probe}), grpc.InTapHandle(t.limitReading),
		grpc.ReadBufferSize(readSpace), grpc.SharedWriteBuffer(true), // idle connections take little
		grpc.ForceServerCodecV2(newExact()), // and so do those whose clients do not read
	}
	if settings.header > 0 {
		opts = append(opts, grpc.MaxHeaderListSize(uint32(settings.header)))
	}
	if settings.handshake > 0 {
		opts = append(opts, grpc.ConnectionTimeout(settings.handshake))
	}
	if settings.traced {
		opts = append(opts, grpc.UnaryInterceptor(t.joinSpan))
	}
	creds := insecure.NewCredentials()
	if settings.auth.TLS {
		creds = credentials.NewTLS(&tls.Config{
			NextProtos: []string{"h2"},
			// Asked for each connection: certificates change, and so does who sits there.
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				return conn.ConfigFor(t.Now().Proto.(*Settings).TLS, hello)
			},
		})
	}
	t.server = grpc.NewServer(append(opts, grpc.Creds(framing{creds}))...)
	pb.RegisterDnsServiceServer(t.server, t)
	return t
}

// Holds implements service.Heirloom: calls are counted.
func (t *Transport) Holds(*service.Service) bool { return false }

// ListenOn makes l the listener of t. That of the server before ends its loop with it.
func (t *Transport) ListenOn(l net.Listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listener != nil {
		t.listener.Close()
	}
	t.listener = l
}

// Serve serves calls that come on connections of l, which ListenOn was told.
func (t *Transport) Serve(l net.Listener) error {
	t.coming.Add(1)
	defer t.coming.Add(-1)
	err := t.server.Serve(&admissionListener{reuseport.Patient(l), t.admission, &t.coming})
	if errors.Is(err, net.ErrClosed) {
		return nil // another server listens there
	}
	return err
}

// Query answers one call.
func (t *Transport) Query(ctx context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	s := t.Enter()
	defer s.Inflight.Done()
	return Query(ctx, s, in)
}

// Stop implements service.Transport.
func (t *Transport) Stop(ctx context.Context) error {
	t.mu.Lock()
	l := t.listener
	t.mu.Unlock()
	// Another process may listen at the address: what the kernel would still give us is better given to it.
	if t.Now().Leaving.Load() {
		conn.Quiesce(l)
	}
	if l != nil {
		l.Close()
	}
	t.awaitComing()
	t.admission.Close()
	t.tell()
	ended := make(chan struct{})
	go func() { t.server.GracefulStop(); close(ended) }()
	// Clients are told to close their connections; those that do not are closed when they are idle. The library
	// writes the reply to a call behind our back: so for a moment after the last one a connection is not idle yet, and
	// for longer if its client takes that slowly.
	look := time.NewTicker(service.DrainTime)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-look.C:
			t.admission.EvictIdle(service.DrainTime)
		case <-ctx.Done():
			t.server.Stop() // ends GracefulStop, too
			<-ended
			return ctx.Err()
		}
	}
}

// readingKey holds the reading of a call.
type readingKey struct{}

// reading ends a call whose message does not come.
type reading struct {
	timer  *time.Timer
	forget func() bool // what ends the timer with the call
	cancel context.CancelCauseFunc

	// Of readings, whose lock is for these.
	before, next *reading
	since        time.Time
	listed       bool
}

// end says that the message has come.
func (r *reading) end() {
	r.timer.Stop()
	r.forget()
	r.leave()
}

var errSlowCall = errors.New("the message did not come in time")

// limitReading is called when the header of a call has come, and gives the client time for its message.
func (t *Transport) limitReading(call context.Context, _ *tap.Info) (context.Context, error) {
	s := t.Now()
	ctx, cancel := context.WithCancelCause(call) //nolint:govet // it ends with the call's context
	r := &reading{cancel: cancel}
	gave, ok := r.begin(t.mostCalls)
	if gave != nil {
		s.Limited("waiting")
		gave.cancel(errSlowCall)
	}
	if ok && !enter(call, t.mostCalls) {
		r.leave()
		ok = false
	}
	if !ok {
		cancel(nil)
		s.Limited("waiting")
		return nil, status.Error(codes.ResourceExhausted, exec.ErrCrowded.Error())
	}
	r.timer = time.AfterFunc(s.Read, func() {
		// The call may have ended just now; then nobody was slow.
		if ctx.Err() == nil {
			s.Limited("read_time")
			cancel(errSlowCall)
		}
	})
	// The timer has the call. Of calls that a client makes and takes back all the time, hundreds of thousands would be
	// kept until their time is over. The context that came has room for one more to tell, which costs less.
	r.forget = context.AfterFunc(call, func() {
		r.timer.Stop()
		r.leave()
	})
	return context.WithValue(ctx, readingKey{}, r), nil
}
