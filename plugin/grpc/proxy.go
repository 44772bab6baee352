package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Proxy is one upstream. Any number of goroutines may use it.
type Proxy struct {
	addr   string // as metrics tell it
	links  links
	counts counts

	latency policy.Latency
}

// maxPacket is the length of a packed pb.DnsPacket at most: a message, and the head of its field.
const maxPacket = dns.MaxMsgSize + 4

// retries are how often an upstream is tried that is away: queries fail until a try succeeds, so the last pause
// is short.
var retries = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: overall,
}

// alive is when a connection is dead: something was asked, nothing came for so long, and a ping is not answered
// in time. The system gives it up, too, when what was sent is not acknowledged in that time. Servers take more
// frequent pings for an attack.
var alive = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 4 * time.Second}

// newProxy is the upstream at addr, HOST:PORT or unix://PATH. It connects when it is asked first. Without cfg it is
// asked in plain text.
func newProxy(addr string, cfg *tls.Config) (*Proxy, error) {
	security := insecure.NewCredentials()
	if cfg != nil {
		security = credentials.NewTLS(cfg)
	}
	target := addr
	if !strings.HasPrefix(addr, "unix:") {
		target = "passthrough:///" + strings.ReplaceAll(addr, "%", "%25") // nothing is to be resolved, and it is a URL
	}
	p := &Proxy{addr: addr, counts: countsOf(addr)}
	p.links.dial = func() (*grpc.ClientConn, error) {
		return grpc.NewClient(target, grpc.WithTransportCredentials(security.Clone()), grpc.WithConnectParams(retries), grpc.WithKeepaliveParams(alive),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxPacket), grpc.MaxCallSendMsgSize(maxPacket)))
	}
	if err := p.links.add(time.Since(epoch)); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", addr, err)
	}
	return p, nil
}

// query asks for r, packed.
func (p *Proxy) query(ctx context.Context, packet []byte, r *dns.Msg) (*dns.Msg, error) {
	if parent := ot.SpanFromContext(ctx); parent != nil {
		span := parent.Tracer().StartSpan("query", ot.ChildOf(parent.Context()), ext.SpanKindRPCClient)
		span.SetTag("peer.address", p.addr)
		defer span.Finish()
		ctx = ot.ContextWithSpan(ctx, span)
		headers := headers{}
		if span.Tracer().Inject(span.Context(), ot.HTTPHeaders, headers) == nil {
			ctx = metadata.NewOutgoingContext(ctx, metadata.MD(headers))
		}
	}
	began := time.Now()
	m, err := p.exchange(ctx, packet, r)
	switch {
	case err == nil:
		took := time.Since(began)
		p.counts.count(m.Rcode, took)
		p.latency.Note(took)
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.latency.Missed()
	}
	return m, err
}

// headers are those of a call, with the trace that it belongs to: an upstream that follows queries, too, goes on with
// it.
type headers metadata.MD

// Set implements ot.TextMapWriter.
func (h headers) Set(key, value string) { metadata.MD(h).Set(key, value) }

// exchange is query without the counting.
func (p *Proxy) exchange(ctx context.Context, packet []byte, r *dns.Msg) (*dns.Msg, error) {
	reply, err := p.links.ask(ctx, packet)
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound: // how some say that the name does not exist
		return new(dns.Msg).SetRcode(r, dns.RcodeNameError), nil
	default:
		return nil, fmt.Errorf("asking %s: %w", p.addr, err)
	}
	if len(reply.Msg) > dns.MaxMsgSize {
		return nil, fmt.Errorf("asking %s: %w", p.addr, tooLarge(len(reply.Msg)))
	}
	m, err := wire.UnpackMsg(reply.Msg)
	if err != nil {
		return nil, fmt.Errorf("reply of %s: %w", p.addr, err)
	}
	if replies.BareError(reply.Msg) && m.Id == r.Id {
		m.Question = slices.Clone(r.Question)
	}
	return m, nil
}

func tooLarge(n int) error {
	return fmt.Errorf("%w: %d bytes, at most %d", ErrDNSMessageTooLarge, n, dns.MaxMsgSize)
}

func (p *Proxy) stop() error { return p.links.stop() }
