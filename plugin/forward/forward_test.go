package forward

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/within"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// upstream is a server that answers with f.
func upstream(t testing.TB, f dns.HandlerFunc) string {
	t.Helper()
	s := dnstest.NewMultipleServer(f)
	t.Cleanup(s.Close)
	return s.Addr
}

// says answers with one A record of that address.
func says(addr string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A(r.Question[0].Name + " 60 IN A " + addr)}
		w.WriteMsg(m)
	}
}

func withRcode(rcode int) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) { w.WriteMsg(new(dns.Msg).SetRcode(r, rcode)) }
}

// silence is an address where somebody listens and says nothing.
func silence(t testing.TB) string {
	t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.LocalAddr().String()
}

// configured is what the Corefile lines make, started; the first one has the others behind it.
func configured(t testing.TB, corefile string) *Forward {
	t.Helper()
	c := caddy.NewTestController("dns", corefile)
	all, err := directive.ParseEach(c, defaults())
	if err != nil {
		t.Fatal(err)
	}
	var next plugin.Handler
	var first *Forward
	for i := len(all) - 1; i >= 0; i-- {
		first = all[i].forward()
		first.Next = next
		if err := first.OnStartup(); err != nil {
			t.Fatal(err)
		}
		f := first
		t.Cleanup(func() { f.OnShutdown() })
		next = first
	}
	return first
}

// serve runs one query and returns the reply that was written, nil if none was.
func serve(f plugin.Handler, w dns.ResponseWriter, r *dns.Msg) (*dns.Msg, int, error) {
	rec := dnstest.NewRecorder(w)
	rcode, err := f.ServeDNS(context.Background(), rec, r)
	return rec.Msg, rcode, err
}

func askA(f plugin.Handler, name string) (*dns.Msg, int, error) {
	return serve(f, &test.ResponseWriter{}, new(dns.Msg).SetQuestion(name, dns.TypeA))
}

// answered is the address that the answer has, or what went wrong.
func answered(f plugin.Handler, name string) string {
	m, rcode, err := askA(f, name)
	switch {
	case m != nil && len(m.Answer) == 1:
		return m.Answer[0].(*dns.A).A.String()
	case m != nil:
		return dns.RcodeToString[m.Rcode]
	}
	return fmt.Sprintf("%s %v", dns.RcodeToString[rcode], err)
}

func TestReplyIsPassedOn(t *testing.T) {
	var got atomic.Pointer[dns.Msg]
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		got.Store(r.Copy())
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable, m.AuthenticatedData, m.Authoritative = true, true, true
		m.Answer = []dns.RR{test.CNAME("WWW.example.org. 60 IN CNAME a.example.org."), test.A("a.example.org. 61 IN A 192.0.2.1")}
		m.SetEdns0(1232, true)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 3, ExtraText: "stale"}}
		w.WriteMsg(m)
	})
	f := configured(t, "forward . "+addr)
	r := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
	r.Id, r.CheckingDisabled = 4711, true
	r.SetEdns0(1400, true)
	r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: 8, Family: 1, SourceNetmask: 24, Address: net.IPv4(192, 0, 2, 0).To4()}}
	m, rcode, err := serve(f, &test.ResponseWriter{}, r)
	if err != nil || rcode != 0 || m == nil {
		t.Fatal(m, rcode, err)
	}
	if m.Id != 4711 || !m.RecursionAvailable || !m.AuthenticatedData || !m.Authoritative || len(m.Answer) != 2 || m.IsEdns0().Option[0].Option() != dns.EDNS0EDE {
		t.Error(m)
	}
	q := got.Load()
	r.Id = q.Id
	if q.String() != r.String() {
		t.Errorf("the upstream saw\n%v\nwant\n%v", q, r)
	}
}

// Replies with whatever rcode and content are answers.
func TestOddReplies(t *testing.T) {
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetRcode(r, int(r.Question[0].Name[0]-'a'))
		w.WriteMsg(m)
	})
	f := configured(t, "forward . "+addr)
	for rcode := range 11 {
		m, rc, err := askA(f, string(rune('a'+rcode))+".example.org.")
		if err != nil || rc != 0 || m == nil || m.Rcode != rcode {
			t.Error(rcode, m, rc, err)
		}
	}
}

func TestZones(t *testing.T) {
	f := configured(t, "forward Example.org "+upstream(t, says("192.0.2.1"))+` {
		except internal.example.org a.example.org
		except Example.org b.example.org
	}`)
	f.Next = test.NextHandler(dns.RcodeNotAuth, nil)
	for name, want := range map[string]string{
		"example.org.":              "192.0.2.1", // excepted, but it is FROM itself
		"WWW.example.ORG.":          "NOTAUTH <nil>",
		"www.internal.example.org.": "NOTAUTH <nil>",
		"example.net.":              "NOTAUTH <nil>",
		"notexample.org.":           "NOTAUTH <nil>",
	} {
		if got := answered(f, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	zones := within.Zones{From: f.zones.From}
	zones.Except(f.zones.Excepted()[:2]...)
	f.zones = zones
	for name, want := range map[string]string{
		"WWW.example.ORG.":          "192.0.2.1",
		"internal.example.org.":     "NOTAUTH <nil>",
		"www.internal.example.org.": "NOTAUTH <nil>",
		"xinternal.example.org.":    "192.0.2.1",
	} {
		if got := answered(f, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	f.Next = nil
	if got := answered(f, "example.net."); got != "SERVFAIL plugin/forward: no next plugin found" {
		t.Error(got)
	}
}

func TestSeveral(t *testing.T) {
	one, two := upstream(t, says("192.0.2.1")), upstream(t, says("192.0.2.2"))
	f := configured(t, "forward one.example.org "+one+"\nforward example.org "+two)
	for name, want := range map[string]string{"www.one.example.org.": "192.0.2.1", "www.two.example.org.": "192.0.2.2"} {
		if got := answered(f, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Queries of one batch for one upstream leave from one port, whatever directive they are for.
func TestSeveralToOneUpstream(t *testing.T) {
	from := make(chan string, 2)
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		from <- w.RemoteAddr().String()
		says("192.0.2.1")(w, r)
	})
	f := configured(t, "forward one.example.org "+addr+"\nforward example.org "+addr+" {\npolicy round_robin\nmax_fails 0\n}")
	loop := eventloop.New()
	defer loop.Close()
	loop.Enter()
	for _, name := range []string{"www.one.example.org.", "www.two.example.org."} {
		packet, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		q.SetLoop(loop)
		if out := f.ServeWire(context.Background(), &w, &q); out != wire.Park {
			t.Fatalf("%s came out as %v", name, out)
		}
	}
	loop.Done(0)
	loop.Leave()
	if one, two := <-from, <-from; one != two {
		t.Errorf("came from %s and %s", one, two)
	}
}

func TestFailoverAndNext(t *testing.T) {
	refused, good, none := upstream(t, withRcode(dns.RcodeRefused)), upstream(t, says("192.0.2.1")), upstream(t, withRcode(dns.RcodeSuccess))
	for corefile, want := range map[string]string{
		"forward . " + refused + " " + good + " {\npolicy sequential\nfailover refused\n}":                        "192.0.2.1",
		"forward . " + refused + " " + good + " {\npolicy sequential\n}":                                          "REFUSED",
		"forward . " + refused + " " + refused + "\n":                                                             "REFUSED",
		"forward . " + refused + " {\nnext REFUSED\n}\nforward . " + good:                                         "192.0.2.1",
		"forward . " + refused + " {\nnext REFUSED\n}":                                                            "REFUSED",
		"forward . " + none + " {\nnext_on_nodata\n}\nforward . " + good:                                          "192.0.2.1",
		"forward . " + none + "\nforward . " + good:                                                               "NOERROR",
		"forward . " + loopback.Addr() + " " + good + " {\npolicy sequential\n}":                                  "192.0.2.1",
		"forward . " + loopback.Addr() + " {\nmax_connect_attempts 1\n}":                                          "connection refused",
		"forward . " + loopback.Addr() + " " + good + " {\npolicy sequential\nmax_connect_attempts 4294967295\n}": "192.0.2.1",
		"forward . " + silence(t) + " " + good + " {\npolicy sequential\nread_timeout 50ms\n}":                    "192.0.2.1",
		"forward . " + silence(t) + " {\nread_timeout 50ms\n}":                                                    "i/o timeout",
	} {
		f := configured(t, corefile)
		if got := answered(f, "www.example.org."); got != want && !(strings.HasPrefix(got, "SERVFAIL read udp ") && strings.HasSuffix(got, want)) {
			t.Errorf("%s\ngot %s, want %s", corefile, got, want)
		}
	}
}

func TestTransports(t *testing.T) {
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		_, tcp := w.RemoteAddr().(*net.TCPAddr)
		m.Truncated = !tcp && strings.HasPrefix(r.Question[0].Name, "big")
		proto := "192.0.2.17"
		if tcp {
			proto = "192.0.2.6"
		}
		if !m.Truncated {
			m.Answer = []dns.RR{test.A(r.Question[0].Name + " 60 IN A " + proto)}
		}
		w.WriteMsg(m)
	})
	for options, want := range map[string]string{ // small over udp, over tcp; big over udp, over tcp
		"":                      "17 6 TC 6",
		"force_tcp":             "6 6 6 6",
		"prefer_udp":            "17 17 6 6",
		"force_tcp\nprefer_udp": "6 6 6 6",
	} {
		f := configured(t, "forward . "+addr+" {\n"+options+"\n}")
		var got []string
		for _, name := range []string{"small.example.org.", "big.example.org."} {
			for _, tcp := range []bool{false, true} {
				m, _, err := serve(f, &test.ResponseWriter{TCP: tcp}, new(dns.Msg).SetQuestion(name, dns.TypeA))
				switch {
				case err != nil:
					got = append(got, err.Error())
				case m.Truncated:
					got = append(got, "TC")
				default:
					got = append(got, strings.TrimPrefix(m.Answer[0].(*dns.A).A.String(), "192.0.2."))
				}
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q: got %s, want %s", options, g, want)
		}
	}
}

// Programs that make their own Forward.
func TestEmbedded(t *testing.T) {
	f := New()
	if got := answered(f, "www.example.org."); got != "SERVFAIL no forwarder defined" {
		t.Error(got)
	}
	addr := upstream(t, says("192.0.2.1"))
	p := proxy.NewProxy("embedded", addr, "dns")
	f.SetProxy(p)
	f.SetProxyOptions(proxy.Options{ForceTCP: true, HCDomain: "."})
	defer f.OnShutdown()
	if f.Len() != 1 || f.List()[0] != p || !f.ForceTCP() || f.PreferUDP() || f.Name() != "forward" {
		t.Error("not what was set")
	}
	if got := answered(f, "www.example.org."); got != "192.0.2.1" {
		t.Error(got)
	}
	f.OnShutdown()
	if got := answered(f, "www.example.org."); got != "SERVFAIL "+proxy.ErrTransportStopped {
		t.Error(got)
	}
	var _ Policy = listing{f.policy}
}
