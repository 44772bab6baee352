package secondary

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// endless is a primary whose zone has an end only as long as that is wanted. It counts the records that it sent.
func endless(t *testing.T, ends *atomic.Bool, sent *atomic.Int64) (addr string) {
	t.Helper()
	rr := func(text string) dns.RR {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		return rr
	}
	var many []dns.RR
	for i := range 2000 {
		many = append(many, rr(fmt.Sprintf("n%d.example.org. 60 IN A 192.0.2.1", i)))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		serial := 2
		if ends.Load() {
			serial = 1
		}
		soa := rr(fmt.Sprintf("example.org. 60 IN SOA ns.example.org. h.example.org. %d 7200 3600 1209600 60", serial))
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{soa}
		if r.Question[0].Qtype == dns.TypeSOA {
			w.WriteMsg(m)
			return
		}
		m.Answer = append(m.Answer, rr("example.org. 60 IN NS ns.example.org."), rr("a.example.org. 60 IN A 192.0.2.7"))
		if ends.Load() {
			m.Answer = append(m.Answer, soa)
		}
		w.WriteMsg(m)
		m.Answer, m.Compress = many, true
		packed, err := m.Pack()
		for !ends.Load() && err == nil {
			if _, err = w.Write(packed); err == nil {
				sent.Add(int64(len(many)))
			}
		}
		w.Close()
	})}
	done, started := make(chan struct{}), make(chan struct{})
	s.NotifyStartedFunc = func() { close(started) }
	go func() {
		defer close(done)
		s.ActivateAndServe()
	}()
	<-started // one that has not started does not end
	t.Cleanup(func() {
		ends.Store(true)
		s.Shutdown()
		<-done
	})
	return l.Addr().String()
}

// A transfer that never ends is given up when it has brought what it may. The zone before it stays.
func TestEndlessTransfer(t *testing.T) {
	out := logtest.Capture(t)
	var ends atomic.Bool
	var sent atomic.Int64
	ends.Store(true)
	addr := endless(t, &ends, &sent)
	c := caddy.NewTestController("dns", "secondary example.org {\ntransfer from "+addr+"\n}")
	limits := fetch.LimitsFor(0) // as few as there may be, and still many for a test
	limits.Records /= 50
	if err := setupWith(c, limits); err != nil {
		t.Fatal(err)
	}
	s := dnsserver.GetConfig(c).Plugin[0](nil).(Secondary)
	s.roster.start(nil)
	t.Cleanup(s.roster.stop)
	becomes(t, s, "a.example.org.", "192.0.2.7")
	ends.Store(false)
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the refusal", func() bool {
		return strings.Contains(out.String(), fmt.Sprintf("Failed to transfer `example.org.' from %q: more than %d records", addr, limits.Records))
	})
	if got := ask(t, s, "a.example.org."); got != "192.0.2.7" {
		t.Errorf("got %s", got)
	}
	if v := s.roster.replica("example.org.").zone.Current(); v.Serial() != 1 || v.Records() != 3 {
		t.Errorf("serial %d, %d records", v.Serial(), v.Records())
	}
	if n := sent.Load(); n < int64(limits.Records) {
		t.Errorf("it was given up after %d records", n)
	}
}

// Limits are those of the memory, unless the Corefile says otherwise.
func TestLimitsOfMemory(t *testing.T) {
	for text, want := range map[string]fetch.Limits{
		"":                                   {Records: 4 << 20, Octets: 1 << 30},
		"max_records 50000000":               {Records: 50_000_000, Octets: 1 << 30},
		"max_octets 1000\nmax_records 20000": {Records: 20000, Octets: 1000},
		"max_octets 2M":                      {Records: 4 << 20, Octets: 2 << 20},
	} {
		c := caddy.NewTestController("dns", "secondary example.org {\ntransfer from 192.0.2.1\n"+text+"\n}")
		if err := setupWith(c, fetch.LimitsFor(4<<30)); err != nil {
			t.Fatal(err)
		}
		s := dnsserver.GetConfig(c).Plugin[0](nil).(Secondary)
		if got := s.roster.replica("example.org.").source.limits; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	c := caddy.NewTestController("dns", "secondary example.org {\ntransfer from 192.0.2.1\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	if got := dnsserver.GetConfig(c).Plugin[0](nil).(Secondary).roster.replica("example.org.").source.limits; got != file.TransferLimits() || got.Records == 0 {
		t.Errorf("%+v", got)
	}
}
