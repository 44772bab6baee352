package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMaxConcurrent(t *testing.T) {
	release := make(chan bool)
	asked := make(chan bool, 10)
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		asked <- true
		<-release
		says("192.0.2.1")(w, r)
	})
	f := configured(t, "forward . "+addr+" {\nmax_concurrent 3\n}")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got := answered(f, "www.example.org."); got != "192.0.2.1" {
				t.Error(got)
			}
		})
	}
	for range 3 {
		<-asked
	}
	before := testutil.ToFloat64(maxConcurrentRejects)
	m, rcode, err := askA(f, "www.example.org.")
	if m != nil || rcode != dns.RcodeRefused || !errors.Is(err, f.ErrLimitExceeded) || err.Error() != "concurrent queries exceeded maximum 3" {
		t.Error(m, rcode, err)
	}
	if n := testutil.ToFloat64(maxConcurrentRejects) - before; n != 1 {
		t.Errorf("%v counted", n)
	}
	close(release)
	wg.Wait()
	if got := answered(f, "www.example.org."); got != "192.0.2.1" {
		t.Error(got)
	}
}

// An upstream that died is passed over after max_fails checks, and used again within one probe interval.
func TestDownAndRecovery(t *testing.T) {
	dead := loopback.Addr()
	f := configured(t, "forward . "+dead+" {\nhealth_check 20ms\nmax_fails 2\nfailfast_all_unhealthy_upstreams\n}")
	up := f.List()[0]
	before := testutil.ToFloat64(healthcheckBroken)
	deadline := time.Now().Add(5 * time.Second)
	for answered(f, "www.example.org.") != "SERVFAIL no healthy proxies" {
		if time.Now().After(deadline) {
			t.Fatal("never down")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if up.Fails() < 3 || testutil.ToFloat64(healthcheckBroken) <= before {
		t.Errorf("%d fails, broken not counted", up.Fails())
	}
	conn, err := net.ListenPacket("udp", dead)
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: says("192.0.2.1")}
	go s.ActivateAndServe()
	defer s.Shutdown()
	began := time.Now()
	for answered(f, "www.example.org.") != "192.0.2.1" {
		if time.Since(began) > 2*time.Second {
			t.Fatal("not used again")
		}
		time.Sleep(time.Millisecond)
	}
}

// While one of two upstreams is dead, no query fails.
func TestOneOfTwoDies(t *testing.T) {
	good := upstream(t, says("192.0.2.1"))
	f := configured(t, "forward . "+loopback.Addr()+" "+good+" {\nhealth_check 20ms\n}")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 100 {
				if got := answered(f, "www.example.org."); got != "192.0.2.1" {
					t.Error(got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A client that does not wait is no reason to suspect an upstream.
func TestContext(t *testing.T) {
	var probes atomic.Int64
	f := configured(t, "forward . "+upstream(t, func(_ dns.ResponseWriter, r *dns.Msg) {
		if r.Question[0].Qtype == dns.TypeNS {
			probes.Add(1)
		}
	}))
	for name, begin := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 50*time.Millisecond)
		},
		"cancel": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := begin()
		began := time.Now()
		rcode, err := f.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if d := time.Since(began); rcode != dns.RcodeServerFailure || err == nil || d > time.Second {
			t.Errorf("%s: %d, %v after %v", name, rcode, err, d)
		}
		cancel()
	}
	time.Sleep(50 * time.Millisecond)
	if n := probes.Load(); n != 0 {
		t.Errorf("%d probes", n)
	}
}

// What cannot be packed is the client's fault, and no upstream's.
func TestUnpackable(t *testing.T) {
	f := configured(t, "forward . "+loopback.Addr())
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	r.Extra = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "example..org.", Rrtype: dns.TypeA}}}
	m, rcode, err := serve(f, &test.ResponseWriter{}, r)
	if m != nil || rcode != dns.RcodeFormatError || err == nil {
		t.Error(m, rcode, err)
	}
	two := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	if _, rcode, err = serve(f, &test.ResponseWriter{}, two); rcode != dns.RcodeFormatError || !errors.Is(err, proxy.ErrInvalidRequest) {
		t.Error(rcode, err)
	}
	if n := f.List()[0].Fails(); n != 0 {
		t.Errorf("%d health checks", n)
	}
}

func TestMetadata(t *testing.T) {
	addr := upstream(t, says("192.0.2.1"))
	f := configured(t, "forward . "+loopback.Addr()+" "+addr+" {\npolicy sequential\n}")
	ctx := metadata.ContextWithMetadata(context.Background())
	if rcode, err := f.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); rcode != 0 || err != nil {
		t.Fatal(rcode, err)
	}
	if got := metadata.ValueFunc(ctx, "forward/upstream"); got == nil || got() != addr {
		t.Error("no upstream")
	}
}

type taps []*tap.Message

func (l *taps) TapMessageWithMetadata(_ context.Context, m *tap.Message, state request.Request) {
	if state.Name() != "www.example.org." {
		m = nil
	}
	*l = append(*l, m)
}

// Each attempt is told: the query, and the reply if one came.
func TestTap(t *testing.T) {
	dead, addr := loopback.Addr(), upstream(t, says("192.0.2.1"))
	f := configured(t, "forward . "+dead+" "+addr+" {\npolicy sequential\n}")
	var l, bare taps
	f.taps = []dnstapped{{&l, true}, {&bare, false}}
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if _, _, err := serve(f, &test.ResponseWriter{TCP: true}, r); err != nil {
		t.Fatal(err)
	}
	if len(l) != 3 || len(bare) != 3 {
		t.Fatal(l, bare)
	}
	for i, want := range []struct {
		kind tap.Message_Type
		to   string
	}{{tap.Message_FORWARDER_QUERY, dead}, {tap.Message_FORWARDER_QUERY, addr}, {tap.Message_FORWARDER_RESPONSE, addr}} {
		m := l[i]
		to := fmt.Sprintf("%s:%d", net.IP(m.ResponseAddress), m.GetResponsePort())
		if m.GetType() != want.kind || to != want.to || m.GetSocketProtocol() != tap.SocketProtocol_TCP || m.GetQueryTimeSec() == 0 {
			t.Errorf("%d: %v", i, m)
		}
		if bare[i].QueryMessage != nil || bare[i].ResponseMessage != nil {
			t.Errorf("%d: %v", i, bare[i])
		}
	}
	var query, reply dns.Msg
	if query.Unpack(l[1].QueryMessage) != nil || query.Id != r.Id || reply.Unpack(l[2].ResponseMessage) != nil || reply.Id != r.Id || len(reply.Answer) != 1 {
		t.Errorf("%v %v", query, reply)
	}
	if l[2].GetQueryPort() == 0 || l[2].GetResponseTimeSec() == 0 {
		t.Error(l[2])
	}
}

// quick is an upstream that does as little as can be.
func quick(b *testing.B) string {
	b.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			buf[2] |= 0x80
			buf[7] = 1
			conn.WriteToUDPAddrPort(append(buf[:n], 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1), from)
		}
	}()
	return conn.LocalAddr().String()
}

func BenchmarkServeDNS(b *testing.B) {
	f := configured(b, "forward . "+quick(b))
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		for pb.Next() {
			if rcode, err := f.ServeDNS(context.Background(), &test.ResponseWriter{}, r); rcode != 0 || err != nil {
				b.Error(rcode, err)
				return
			}
		}
	})
}
