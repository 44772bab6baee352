package forward

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// book is a resolver with addresses that a test changes.
type book struct {
	sync.Mutex
	addrs []string
	no6   bool
	err   error
}

func (b *book) lookup(context.Context, string) (f found, err error) {
	b.Lock()
	defer b.Unlock()
	for _, a := range b.addrs {
		f.addrs = append(f.addrs, netip.MustParseAddr(a))
	}
	f.ttl, f.no6 = time.Millisecond, b.no6
	return f, b.err
}

func (b *book) set(err error, addrs ...string) {
	b.Lock()
	b.addrs, b.err = addrs, err
	b.Unlock()
}

func addresses(f *Forward) string {
	var all []string
	for _, p := range *f.upstreams.Load() {
		all = append(all, p.Addr())
	}
	return strings.Join(all, " ")
}

func named(t *testing.T, corefile string, r resolver) *Forward {
	t.Helper()
	s := settingsOf(t, corefile)
	f := s.forward()
	f.names.resolver = r
	t.Cleanup(func() { f.OnShutdown() })
	return f
}

// The upstreams of a name are its addresses, at its place, each once.
func TestNames(t *testing.T) {
	b := &book{addrs: []string{"192.0.2.1", "2001:db8::1", "192.0.2.9"}}
	f := named(t, "forward . 192.0.2.8 dns.example.org:5300 192.0.2.9:5300 {\npolicy sequential\n}", b)
	if got := addresses(f); got != "192.0.2.8:53 192.0.2.9:5300" {
		t.Error(got)
	}
	if err := f.OnStartup(); err != nil {
		t.Fatal(err)
	}
	if got := addresses(f); got != "192.0.2.8:53 192.0.2.1:5300 [2001:db8::1]:5300 192.0.2.9:5300" || f.Len() != 4 {
		t.Error(got)
	}
}

// An address of the other family than source_address cannot be asked from there. If there is no other, it is tried, as
// one is that stands in the configuration.
func TestNamesFromSource(t *testing.T) {
	const corefile = "forward . dns.example.org {\nsource_address %s\npolicy sequential\n}"
	for _, c := range []struct {
		from, want string
		addrs      []string
	}{
		{"192.0.2.7", "192.0.2.1:53 192.0.2.2:53", []string{"192.0.2.1", "2001:db8::1", "192.0.2.2"}},
		{"2001:db8::7", "[2001:db8::1]:53", []string{"192.0.2.1", "2001:db8::1"}},
		{"2001:db8::7", "192.0.2.1:53", []string{"192.0.2.1"}},
	} {
		f := named(t, fmt.Sprintf(corefile, c.from), &book{addrs: c.addrs})
		if err := f.OnStartup(); err != nil {
			t.Fatal(err)
		}
		if got := addresses(f); got != c.want {
			t.Errorf("%v from %s: %s, want %s", c.addrs, c.from, got, c.want)
		}
	}
}

func TestUnknownNameIsFatal(t *testing.T) {
	f := named(t, "forward . dns.example.org", &book{err: errors.New("no such host")})
	if err := f.OnStartup(); err == nil || !strings.Contains(err.Error(), `failed to resolve "dns.example.org": no such host`) {
		t.Error(err)
	}
}

// A name's new addresses replace its old ones; those that stay keep what is known of them, and failures change nothing.
func TestRefresh(t *testing.T) {
	b := &book{addrs: []string{"192.0.2.1", "192.0.2.2"}}
	f := named(t, "forward . dns.example.org", b)
	if err := f.OnStartup(); err != nil {
		t.Fatal(err)
	}
	second := (*f.upstreams.Load())[1]
	b.set(nil, "192.0.2.2", "192.0.2.3")
	ttl, gone, err := f.names.refresh(t.Context(), f.sources[0])
	if err != nil || ttl != minRefresh || len(gone) != 1 || gone[0].Addr() != "192.0.2.1:53" {
		t.Error(ttl, gone, err)
	}
	if got := addresses(f); got != "192.0.2.2:53 192.0.2.3:53" || (*f.upstreams.Load())[0] != second {
		t.Error(got)
	}
	b.set(errors.New("timeout"))
	if _, _, err := f.names.refresh(t.Context(), f.sources[0]); err == nil || addresses(f) != "192.0.2.2:53 192.0.2.3:53" {
		t.Error(err, addresses(f))
	}
}

// What could not be looked up of one kind of addresses leaves those of that kind.
func TestHalfARefresh(t *testing.T) {
	b := &book{addrs: []string{"192.0.2.1", "2001:db8::1"}}
	f := named(t, "forward . dns.example.org", b)
	if err := f.OnStartup(); err != nil {
		t.Fatal(err)
	}
	b.no6 = true
	b.set(nil, "192.0.2.2")
	if _, gone, err := f.names.refresh(t.Context(), f.sources[0]); err != nil || len(gone) != 1 || addresses(f) != "192.0.2.2:53 [2001:db8::1]:53" {
		t.Error(gone, err, addresses(f))
	}
	b.no6 = false
	b.set(nil, "192.0.2.2")
	if _, gone, err := f.names.refresh(t.Context(), f.sources[0]); err != nil || len(gone) != 1 || addresses(f) != "192.0.2.2:53" {
		t.Error(gone, err, addresses(f))
	}
}

// The goroutine that refreshes stops what is not asked any more, and ends with the Forward.
func TestRefreshRuns(t *testing.T) {
	b := &book{addrs: []string{"192.0.2.1"}}
	f := named(t, "forward . dns.example.org", b)
	if err := f.OnStartup(); err != nil {
		t.Fatal(err)
	}
	f.names.stop()
	old := (*f.upstreams.Load())[0]
	b.set(nil, "192.0.2.2")
	ctx, cancel := context.WithCancel(context.Background())
	f.names.running.Go(func() { f.names.run(ctx, time.Millisecond) })
	for end := time.Now().Add(5 * time.Second); addresses(f) != "192.0.2.2:53"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not refreshed")
		}
	}
	cancel()
	f.names.running.Wait()
	if _, err := exchange(t.Context(), old, new(dns.Msg).SetQuestion(".", dns.TypeNS)); err == nil || err.Error() != proxy.ErrTransportStopped {
		t.Errorf("an old upstream lives: %v", err)
	}
}

// When none of a name's addresses is up it is looked up before its TTL is over; while one is, it is not.
func TestRefreshOfWhatIsDown(t *testing.T) {
	b := &book{addrs: []string{"127.0.0.1"}}
	f := named(t, fmt.Sprintf("forward . dns.example.org:%d {\nmax_fails 1\nhealth_check 10ms\n}", loopback.Port()), b)
	f.names.every = 5 * time.Millisecond
	if err := f.OnStartup(); err != nil {
		t.Fatal(err)
	}
	b.set(nil, "192.0.2.2")
	time.Sleep(100 * time.Millisecond)
	if got := addresses(f); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Fatal("looked up again while it is not known to be down:", got)
	}
	(*f.upstreams.Load())[0].Healthcheck()
	eventually.Holds(t, "the new address is used", func() bool { return strings.HasPrefix(addresses(f), "192.0.2.2:") })
}

func TestServerResolver(t *testing.T) {
	good := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		if r.Question[0].Name != "dns.example.org." {
			m.Rcode = dns.RcodeNameError
		} else if r.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{test.CNAME("dns.example.org. 300 IN CNAME a.example.org."), test.A("a.example.org. 60 IN A 192.0.2.1"), test.A("a.example.org. 60 IN A 192.0.2.1")}
		} else {
			m.Answer = []dns.RR{test.AAAA("dns.example.org. 40 IN AAAA 2001:db8::1")}
		}
		w.WriteMsg(m)
	})
	half := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		if m.Answer = []dns.RR{test.AAAA("dns.example.org. 40 IN AAAA 2001:db8::1")}; r.Question[0].Qtype == dns.TypeA {
			m.Answer, m.Rcode = nil, dns.RcodeServerFailure
		}
		w.WriteMsg(m)
	})
	for _, servers := range []serverResolver{{loopback.Addr(), good}, {half, good}} {
		f, err := servers.lookup(t.Context(), "dns.example.org")
		if err != nil || f.ttl != 40*time.Second || len(f.addrs) != 2 || f.addrs[0].String() != "192.0.2.1" || f.addrs[1].String() != "2001:db8::1" || f.no4 || f.no6 {
			t.Error(f, err)
		}
	}
	if f, err := (serverResolver{half}).lookup(t.Context(), "dns.example.org"); err != nil || f.ttl != 0 || len(f.addrs) != 1 || !f.no4 || f.no6 {
		t.Error(f, err)
	}
	if _, err := (serverResolver{good}).lookup(t.Context(), "no.example.org"); err == nil || !strings.Contains(err.Error(), "NXDOMAIN") {
		t.Error(err)
	}
	if _, err := (serverResolver{loopback.Addr()}).lookup(t.Context(), "dns.example.org"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

func TestSystemResolver(t *testing.T) {
	f, err := systemResolver{}.lookup(t.Context(), "localhost")
	if err != nil || f.ttl != systemTTL || len(f.addrs) == 0 || !f.addrs[0].IsLoopback() {
		t.Error(f, err)
	}
}
