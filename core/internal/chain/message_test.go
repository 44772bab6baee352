package chain

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	golog "log"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// out keeps what is sent to a client.
type out struct{ sent []*dns.Msg }

func (o *out) Send(b []byte) error {
	m := new(dns.Msg)
	o.sent = append(o.sent, m)
	return m.Unpack(b)
}
func (o *out) Close() error { return nil }
func (o *out) Hijack()      {}

// ours is the writer of a transport of ours, for a client of UDP.
func ours() (*reply.Writer, *out) {
	o := new(out)
	return &reply.Writer{Sink: o, Finish: new(reply.Finisher), Client: reply.Client{Network: "udp",
		Remote: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, Local: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 53), Port: 53}}}, o
}

// foreign is a writer of somebody else's.
type foreign struct {
	dns.ResponseWriter
	sent []*dns.Msg
	err  error
	tls  *tls.ConnectionState
}

func (f *foreign) LocalAddr() net.Addr  { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 53), Port: 53} }
func (f *foreign) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711} }
func (f *foreign) WriteMsg(m *dns.Msg) error {
	f.sent = append(f.sent, m)
	return f.err
}
func (f *foreign) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	f.sent = append(f.sent, m)
	return len(b), m.Unpack(b)
}
func (f *foreign) ConnectionState() *tls.ConnectionState { return f.tls }

// named answers NXDOMAIN.
var named = handler{"named", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return dns.RcodeNameError, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
}}

// returning is a handler that writes nothing and returns that.
func returning(rcode int, err error) handler {
	return handler{"returning", func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return rcode, err }}
}

var panics = handler{"panics", func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { panic("as asked") }}

// explained is an error that tells clients something.
type explained struct{ error }

func (explained) ExtendedError() (uint16, string) { return dns.ExtendedErrorCodeNetworkError, "told" }

// asked is a query for the A records of www.example.org, changed.
func asked(change ...func(*dns.Msg)) *dns.Msg {
	m := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
	for _, c := range change {
		c(m)
	}
	return m
}

func withEDNS(m *dns.Msg) { m.SetEdns0(4096, true) }

// What the chain is not asked, or does not answer, is answered with an error, over writers of ours and of others.
func TestServeDNS(t *testing.T) {
	tell := fmt.Errorf("as asked: %w", explained{errors.New("inside")})
	chaos := func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }
	for _, tc := range []struct {
		name    string
		handler plugin.Handler // nil for an empty block
		r       *dns.Msg
		rcode   int // -1: no reply
		dropped bool
	}{
		{"written", named, asked(), dns.RcodeNameError, false},
		{"written, with EDNS", named, asked(withEDNS), dns.RcodeNameError, false},
		{"silent", silent, asked(), -1, false},
		{"says that it has written", returning(dns.RcodeNameError, nil), asked(), -1, false},
		{"SERVFAIL", returning(dns.RcodeServerFailure, nil), asked(), dns.RcodeServerFailure, false},
		{"REFUSED", returning(dns.RcodeRefused, nil), asked(withEDNS), dns.RcodeRefused, false},
		{"FORMERR", returning(dns.RcodeFormatError, nil), asked(), dns.RcodeFormatError, false},
		{"NOTIMP", returning(dns.RcodeNotImplemented, nil), asked(), dns.RcodeNotImplemented, false},
		{"error that tells", returning(dns.RcodeServerFailure, tell), asked(withEDNS), dns.RcodeServerFailure, false},
		{"error that tells nobody", returning(dns.RcodeServerFailure, tell), asked(), dns.RcodeServerFailure, false},
		{"panic", panics, asked(withEDNS), dns.RcodeServerFailure, false},
		{"no message", named, nil, -1, false},
		{"no question", named, asked(func(m *dns.Msg) { m.Question = nil }), dns.RcodeServerFailure, true},
		{"two OPT records", named, asked(withEDNS, withEDNS), dns.RcodeFormatError, true},
		{"class CH", named, asked(chaos), dns.RcodeRefused, true},
		{"version 1", named, asked(withEDNS, func(m *dns.Msg) { m.IsEdns0().SetVersion(1) }), dns.RcodeBadVers, true},
		{"bad cookie", named, asked(withEDNS, cookieOf("00")), dns.RcodeFormatError, true},
		{"empty block", nil, asked(), dns.RcodeRefused, true},
		{"no block", named, asked(func(m *dns.Msg) { m.Question[0].Name = "example.net." }), dns.RcodeRefused, true},
		{"no name", named, asked(func(m *dns.Msg) { m.Question[0].Name = strings.Repeat("a", 64) + "." }), dns.RcodeRefused, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			golog.SetOutput(new(bytes.Buffer)) // of the panic
			defer golog.SetOutput(os.Stderr)
			b := blockOf("example.org.")
			if tc.handler != nil {
				b = blockOf("example.org.", tc.handler)
			}
			c := build(t, Options{Label: "dns://" + t.Name(), Finish: &reply.Finisher{Cookies: cookie.NewRing(cookie.Keys{{1}})}}, b)
			counted := func() float64 {
				rcode := dns.RcodeToString[max(0, tc.rcode)]
				return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(c.Label, vars.Dropped, "", rcode, ""))
			}
			before := counted()
			w, to := ours()
			c.ServeDNS(t.Context(), w, tc.r)
			other := new(foreign)
			c.ServeDNS(t.Context(), other, tc.r)
			for name, sent := range map[string][]*dns.Msg{"ours": to.sent, "foreign": other.sent} {
				if name == "ours" && tc.name == "no name" {
					continue // it cannot be packed
				}
				expectReply(t, name, tc.r, sent, tc.rcode)
			}
			want := before
			if tc.dropped {
				want += 2
			}
			if n := counted(); n != want && tc.name != "no name" {
				t.Errorf("counted %v times", n-before)
			}
			told := len(other.sent) == 1 && other.sent[0].IsEdns0() != nil && len(other.sent[0].IsEdns0().Option) == 1
			if told != (tc.name == "error that tells") {
				t.Errorf("options: %v", other.sent[0].IsEdns0())
			}
		})
	}
}

// expectReply fails unless sent is one reply to r with that rcode, and an OPT record if r has one.
func expectReply(t *testing.T, name string, r *dns.Msg, sent []*dns.Msg, rcode int) {
	t.Helper()
	if rcode < 0 {
		if len(sent) > 0 {
			t.Errorf("%s: got %v", name, sent)
		}
		return
	}
	if len(sent) != 1 {
		t.Fatalf("%s: %d replies", name, len(sent))
	}
	m := sent[0]
	if m.Rcode != rcode || m.Id != r.Id || !m.Response || len(m.Question) != len(r.Question) || (m.IsEdns0() != nil) != (r.IsEdns0() != nil) {
		t.Errorf("%s: got %v", name, m)
	}
	if o := m.IsEdns0(); o != nil && (o.UDPSize() != 1232 || o.Version() != 0) {
		t.Errorf("%s: %v", name, o)
	}
}

func cookieOf(octets string) func(*dns.Msg) {
	return func(m *dns.Msg) {
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: octets})
	}
}

// Queries of other classes are for those plugins that want them.
func TestOtherClasses(t *testing.T) {
	c := build(t, Options{}, blockOf(".", named))
	c.Classes = true
	w := new(foreign)
	c.ServeDNS(t.Context(), w, asked(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }))
	if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeNameError {
		t.Errorf("got %v", w.sent)
	}
}

// looking is a writer that looks when it is told to write.
type looking struct {
	foreign
	look func()
}

func (l *looking) WriteMsg(m *dns.Msg) error {
	l.look()
	return l.foreign.WriteMsg(m)
}

// A query that enters no chain is counted before its reply leaves, so that who has that finds itself counted. A writer
// that cannot write has no second reply.
func TestCountedBeforeTheReply(t *testing.T) {
	c := build(t, Options{Label: "dns://" + t.Name()}, blockOf(".", named))
	for rcode, change := range map[int]func(*dns.Msg){
		dns.RcodeRefused: func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
		dns.RcodeBadVers: func(m *dns.Msg) { m.SetEdns0(1232, false); m.IsEdns0().SetVersion(1) },
	} {
		counted := func() float64 {
			return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(c.Label, vars.Dropped, "", dns.RcodeToString[rcode], ""))
		}
		then, before := -1.0, counted()
		w := &looking{foreign{err: errors.New("as asked")}, func() { then = counted() }}
		c.ServeDNS(t.Context(), w, asked(change))
		if len(w.sent) != 1 || then != before+1 || counted() != then {
			t.Errorf("%s: %d replies, counted %v, %v afterwards, %v before", dns.RcodeToString[rcode], len(w.sent), then, counted(), before)
		}
	}
}

// A failure to write the reply of a plugin is not followed by another one.
func TestWriterFails(t *testing.T) {
	c := build(t, Options{Label: "dns://" + t.Name()}, blockOf(".", returning(dns.RcodeServerFailure, nil)))
	w := &foreign{err: errors.New("as asked")}
	c.ServeDNS(t.Context(), w, asked())
	if len(w.sent) != 1 {
		t.Errorf("%d replies", len(w.sent))
	}
}

// A panic is counted and told, with its stack where that is wanted; with debug it is the process's.
func TestPanics(t *testing.T) {
	log := logtest.Capture(t)
	for _, tc := range []struct {
		o     Options
		lane  bool
		stack bool
	}{{Options{}, false, false}, {Options{Stacktrace: true}, false, true}, {Options{}, true, false}, {Options{Stacktrace: true}, true, true}} {
		log.Take()
		tc.o.Label = "dns://:53"
		c := build(t, tc.o, blockOf(".", inBoth{panics}))
		before := testutil.ToFloat64(vars.Panic)
		if tc.lane {
			if m, out := inLane(t, c, true); out != wire.Done || m.Rcode != dns.RcodeServerFailure {
				t.Errorf("%v, %v", out, m)
			}
		} else {
			c.ServeDNS(t.Context(), new(foreign), asked())
		}
		if n := testutil.ToFloat64(vars.Panic) - before; n != 1 {
			t.Errorf("counted %v times", n)
		}
		text := log.String()
		if !strings.Contains(text, `Recovered from panic in server: "dns://:53" as asked`) || strings.Contains(text, "goroutine ") != tc.stack {
			t.Errorf("logged %s", text)
		}
	}
	c := build(t, Options{Debug: true}, blockOf(".", inBoth{panics}))
	for name, serve := range map[string]func(){
		"message": func() { c.ServeDNS(t.Context(), new(foreign), asked()) }, "wire": func() { inLane(t, c, true) },
	} {
		func() {
			defer func() {
				if v := recover(); v != "as asked" {
					t.Errorf("%s: recovered from %v", name, v)
				}
			}()
			serve()
		}()
	}
}

// inBoth does in the wire lane what its handler does in the message lane: it panics.
type inBoth struct{ handler }

func (h inBoth) WireSelf() plugin.Handler { return h }
func (h inBoth) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	h.serve(context.Background(), nil, nil)
	return wire.Done
}

// collecting gathers what filters look at, and takes queries by it.
type collecting struct {
	handler
	key any
	of  string
}

func (c collecting) Collect(ctx context.Context, req request.Request) context.Context {
	return context.WithValue(ctx, c.key, c.of+" "+req.Name())
}

// Filters see what the block's collector has gathered; that of blocks which are not chosen is gone.
func TestCollectors(t *testing.T) {
	type one struct{}
	type two struct{}
	answers := func(rcode int) (handler, *context.Context) {
		ctx := new(context.Context)
		return handler{"answers", func(in context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			*ctx = in
			return rcode, w.WriteMsg(new(dns.Msg).SetRcode(r, rcode))
		}}, ctx
	}
	first, _ := answers(dns.RcodeNameError)
	second, seen := answers(dns.RcodeYXDomain)
	a, b := blockOf(".", collecting{first, one{}, "first"}), blockOf(".", collecting{second, two{}, "second"})
	*a.View, *b.View = "a", "b"
	asks := 0
	*a.Filters = []FilterFunc{func(ctx context.Context, r *request.Request) bool {
		asks++
		if ctx.Value(one{}) != "first www.example.org." {
			t.Errorf("gathered %v", ctx.Value(one{}))
		}
		return true
	}, func(_ context.Context, r *request.Request) bool { return r.QType() == dns.TypeAAAA }}
	c := build(t, Options{}, a, b)
	w := new(foreign)
	c.ServeDNS(t.Context(), w, asked())
	if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeYXDomain || asks != 1 {
		t.Fatalf("got %v, asked %d times", w.sent, asks)
	}
	if ctx := *seen; ctx.Value(one{}) != nil || ctx.Value(two{}) != "second www.example.org." || ctx.Value(plugin.ViewKey{}) != "b" {
		t.Errorf("context: %v, %v, %v", ctx.Value(one{}), ctx.Value(two{}), ctx.Value(plugin.ViewKey{}))
	}
	w = new(foreign)
	c.ServeDNS(t.Context(), w, asked(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA }))
	if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeNameError {
		t.Errorf("got %v", w.sent)
	}
}
