package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/etcd/etcdtest"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// server is an etcd of the test's own.
type server struct {
	*etcdtest.Server
	t *testing.T
}

func start(t *testing.T) *server {
	t.Helper()
	return &server{etcdtest.Start(t, quietLogger()), t}
}

func (s *server) put(name, value string, opts ...etcdcv3.OpOption) {
	s.t.Helper()
	if _, err := s.Client.Put(context.Background(), msg.Path(name, "skydns"), value, opts...); err != nil {
		s.t.Fatal(err)
	}
}

// plugin is an Etcd that asks s, with or without a copy in memory.
func (s *server) plugin(viewSize int64) *Etcd {
	e := &Etcd{Zones: []string{"skydns.test.", "in-addr.arpa.", "empty.test."}, PathPrefix: "skydns", Upstream: upstream.New(), Client: s.Client}
	if viewSize > 0 {
		e.view = newView(e.admitted, "/skydns", viewSize, e.lastRev.see)
		e.view.start()
		s.t.Cleanup(e.view.stop)
		eventually.Holds(s.t, "the copy", e.Ready)
	}
	return e
}

func ask(e *Etcd, name string, typ uint16) (*dns.Msg, error) {
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	_, err := e.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, typ))
	return rec.Msg, err
}

// text is a reply in one line.
func text(m *dns.Msg) string {
	if m == nil {
		return "no reply"
	}
	var all []string
	for _, rr := range append(m.Answer, m.Extra...) {
		all = append(all, strings.Join(strings.Fields(rr.String()), " "))
	}
	slices.Sort(all)
	if len(m.Answer) == 0 {
		all = nil
		for _, rr := range m.Ns {
			all = append(all, dns.TypeToString[rr.Header().Rrtype])
		}
	}
	return dns.RcodeToString[m.Rcode] + " " + strings.Join(all, "; ")
}

func TestAnswers(t *testing.T) {
	s := start(t)
	for name, value := range map[string]string{
		"a.web.skydns.test":           `{"host":"192.0.2.1","port":80}`,
		"b.web.skydns.test":           `{"host":"192.0.2.2","port":80,"priority":20}`,
		"c.web.skydns.test":           `{"host":"2001:db8::1","port":443,"ttl":60}`,
		"twice.skydns.test":           `{"host":"192.0.2.9"}`,
		"alias.skydns.test":           `{"host":"twice.skydns.test"}`,
		"loop.skydns.test":            `{"host":"loop.skydns.test"}`,
		"text.skydns.test":            `{"text":"some words"}`,
		"both.skydns.test":            `{"host":"192.0.2.10","text":"some words"}`,
		"a.mail.skydns.test":          `{"host":"192.0.2.25","mail":true,"priority":5}`,
		"a.broken.skydns.test":        `{"host":`,
		"b.broken.skydns.test":        `{"host":"192.0.2.77"}`,
		"a.groups.skydns.test":        `{"host":"192.0.2.41","group":"g1"}`,
		"a.sub.groups.skydns.test":    `{"host":"192.0.2.42","group":"g2"}`,
		"b.sub.groups.skydns.test":    `{"host":"192.0.2.43","group":"g1"}`,
		"apex1.apex.dns.skydns.test":  `{"host":"192.0.2.50"}`,
		"ns1.ns.dns.skydns.test":      `{"host":"192.0.2.53"}`,
		"1.2.0.192.in-addr.arpa":      `{"host":"a.web.skydns.test"}`,
		"x.prod.eu.wild.skydns.test":  `{"host":"192.0.2.61"}`,
		"x.prod.us.wild.skydns.test":  `{"host":"192.0.2.62"}`,
		"x.stage.us.wild.skydns.test": `{"host":"192.0.2.63"}`,
	} {
		s.put(name, value)
	}
	const soa = "NOERROR SOA"
	for _, tc := range []struct {
		name string
		typ  uint16
		want string
	}{
		{"web.skydns.test.", dns.TypeA, "NOERROR web.skydns.test. 300 IN A 192.0.2.1; web.skydns.test. 300 IN A 192.0.2.2"},
		{"web.skydns.test.", dns.TypeAAAA, "NOERROR web.skydns.test. 60 IN AAAA 2001:db8::1"},
		{"A.web.SKYDNS.test.", dns.TypeA, "NOERROR A.web.SKYDNS.test. 300 IN A 192.0.2.1"},
		{"web.skydns.test.", dns.TypeSRV, "NOERROR a.web.skydns.test. 300 IN A 192.0.2.1; b.web.skydns.test. 300 IN A 192.0.2.2; c.web.skydns.test. 60 IN AAAA 2001:db8::1; " +
			"web.skydns.test. 300 IN SRV 10 50 80 a.web.skydns.test.; web.skydns.test. 300 IN SRV 20 100 80 b.web.skydns.test.; web.skydns.test. 60 IN SRV 10 50 443 c.web.skydns.test."},
		{"alias.skydns.test.", dns.TypeA, "NOERROR alias.skydns.test. 300 IN CNAME twice.skydns.test.; twice.skydns.test. 300 IN A 192.0.2.9"},
		{"alias.skydns.test.", dns.TypeCNAME, "NOERROR alias.skydns.test. 300 IN CNAME twice.skydns.test."},
		{"loop.skydns.test.", dns.TypeA, soa},
		{"text.skydns.test.", dns.TypeTXT, `NOERROR text.skydns.test. 300 IN TXT "some words"`},
		{"text.skydns.test.", dns.TypeA, soa},
		{"both.skydns.test.", dns.TypeTXT, soa},
		{"web.skydns.test.", dns.TypeCNAME, soa}, // there are names below these
		{"2.0.192.in-addr.arpa.", dns.TypePTR, soa},
		{"nope.skydns.test.", dns.TypeCNAME, "NXDOMAIN SOA"},
		{"2.2.0.192.in-addr.arpa.", dns.TypePTR, "NXDOMAIN SOA"},
		{"mail.skydns.test.", dns.TypeMX, "NOERROR a.mail.skydns.test. 300 IN A 192.0.2.25; mail.skydns.test. 300 IN MX 5 a.mail.skydns.test."},
		{"broken.skydns.test.", dns.TypeA, "NOERROR broken.skydns.test. 300 IN A 192.0.2.77"},
		{"groups.skydns.test.", dns.TypeA, "NOERROR groups.skydns.test. 300 IN A 192.0.2.41; groups.skydns.test. 300 IN A 192.0.2.43"},
		{"skydns.test.", dns.TypeA, "NOERROR skydns.test. 300 IN A 192.0.2.50"},
		{"skydns.test.", dns.TypeNS, "NOERROR ns1.ns.dns.skydns.test. 300 IN A 192.0.2.53; skydns.test. 300 IN NS ns1.ns.dns.skydns.test."},
		{"1.2.0.192.in-addr.arpa.", dns.TypePTR, "NOERROR 1.2.0.192.in-addr.arpa. 300 IN PTR a.web.skydns.test."},
		{"prod.*.wild.skydns.test.", dns.TypeA, "NOERROR prod.*.wild.skydns.test. 300 IN A 192.0.2.61; prod.*.wild.skydns.test. 300 IN A 192.0.2.62"},
		{"any.us.wild.skydns.test.", dns.TypeA, "NOERROR any.us.wild.skydns.test. 300 IN A 192.0.2.62; any.us.wild.skydns.test. 300 IN A 192.0.2.63"},
		{"web.skydns.test.", dns.TypeSOA, soa},
		{"web.skydns.test.", dns.TypeHINFO, soa},
		{"nope.skydns.test.", dns.TypeSOA, "NXDOMAIN SOA"},
		{"empty.test.", dns.TypeNS, soa},
		{"empty.test.", dns.TypeA, soa},
		{"x.empty.test.", dns.TypeA, "NXDOMAIN SOA"},
		{"nope.skydns.test.", dns.TypeA, "NXDOMAIN SOA"},
		{"eb.skydns.test.", dns.TypeA, "NXDOMAIN SOA"},
	} {
		for how, e := range map[string]*Etcd{"live": s.plugin(0), "copy": s.plugin(defaultViewSize)} {
			m, err := ask(e, tc.name, tc.typ)
			if got := text(m); err != nil || got != tc.want {
				t.Errorf("%s: %s %s: %v\n%s\nwant\n%s", how, tc.name, dns.TypeToString[tc.typ], err, got, tc.want)
			}
		}
	}
	e := s.plugin(defaultViewSize)
	transferred(t, e)
	m, err := ask(e, "skydns.test.", dns.TypeSOA)
	if err != nil || len(m.Answer) != 1 || m.Answer[0].(*dns.SOA).Serial == 0 {
		t.Errorf("%v %v", m, err)
	}
}

// Who asks for nothing but the serial, as a secondary does, learns of changes.
func TestSerialFollows(t *testing.T) {
	s := start(t)
	e := s.plugin(0)
	last := uint32(0)
	for range 3 {
		s.put("a.web.skydns.test", `{"host":"192.0.2.1"}`)
		m, err := ask(e, "skydns.test.", dns.TypeSOA)
		if err != nil || len(m.Answer) != 1 || m.Answer[0].(*dns.SOA).Serial <= last {
			t.Fatalf("behind %d: %v %v", last, m, err)
		}
		last = m.Answer[0].(*dns.SOA).Serial
	}
	s.Kill()
	if m, err := ask(e, "skydns.test.", dns.TypeSOA); err != nil || len(m.Answer) != 1 || m.Answer[0].(*dns.SOA).Serial != last {
		t.Errorf("without etcd: %v %v", m, err)
	}
}

// transferred looks at what a transfer of the zone has.
func transferred(t *testing.T, e *Etcd) {
	t.Helper()
	if _, err := e.Transfer("web.skydns.test.", 0); !errors.Is(err, transfer.ErrNotAuthoritative) {
		t.Error(err)
	}
	ch, err := e.Transfer("skydns.test.", 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for rrs := range ch {
		for _, rr := range rrs {
			all = append(all, strings.Join(strings.Fields(rr.String()), " "))
		}
	}
	if all[0] != all[len(all)-1] || !strings.Contains(all[0], "SOA") {
		t.Errorf("%q", all)
	}
	for _, want := range []string{
		"skydns.test. 300 IN NS ns1.ns.dns.skydns.test.", "a.web.skydns.test. 300 IN A 192.0.2.1", "a.web.skydns.test. 300 IN SRV 10 100 80 a.web.skydns.test.",
		"alias.skydns.test. 300 IN CNAME twice.skydns.test.", `text.skydns.test. 300 IN TXT "some words"`, "a.mail.skydns.test. 300 IN MX 5 a.mail.skydns.test.",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("there is no %q in\n%s", want, strings.Join(all, "\n"))
		}
	}
	// What a secondary answers is what is answered here.
	if i := slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, "both.") && strings.Contains(s, "TXT") }); i >= 0 {
		t.Errorf("the text of a service with an address was transferred: %s", all[i])
	}
}

// A change is soon there; a lookup asks nothing of etcd, and goes on while etcd is away.
func TestViewFollows(t *testing.T) {
	s := start(t)
	s.put("a.web.skydns.test", `{"host":"192.0.2.1"}`)
	e := s.plugin(defaultViewSize)
	has := func(want string) func() bool {
		return func() bool { m, _ := ask(e, "web.skydns.test.", dns.TypeA); return text(m) == want }
	}
	one := "NOERROR web.skydns.test. 300 IN A 192.0.2.1"
	eventually.Holds(t, "the first", has(one))
	serial := e.Serial(requestOf("web.skydns.test."))
	began := time.Now()
	s.put("b.web.skydns.test", `{"host":"192.0.2.2"}`)
	eventually.Holds(t, "the second", has(one+"; web.skydns.test. 300 IN A 192.0.2.2"))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a change took %v", took)
	}
	if after := e.Serial(requestOf("web.skydns.test.")); after <= serial {
		t.Errorf("the serial was %d and is %d", serial, after)
	}
	if _, err := s.Client.Delete(context.Background(), msg.Path("b.web.skydns.test", "skydns")); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the end of the second", has(one))

	s.Kill()
	for range 20 {
		if m, err := ask(e, "web.skydns.test.", dns.TypeA); err != nil || text(m) != one {
			t.Fatalf("while etcd is away: %v %v", text(m), err)
		}
	}
	s.Run()
	s.put("c.web.skydns.test", `{"host":"192.0.2.3"}`)
	eventually.Holds(t, "a change after etcd came back", has(one+"; web.skydns.test. 300 IN A 192.0.2.3"))
}

// An etcd that has begun anew, and is behind what was read of it, is read again.
func TestViewOfAnotherEtcd(t *testing.T) {
	s := start(t)
	for range 20 {
		s.put("a.web.skydns.test", `{"host":"192.0.2.1"}`)
	}
	e := s.plugin(0)
	e.view = newView(e.admitted, "/skydns", defaultViewSize, e.lastRev.see)
	e.view.check = 20 * time.Millisecond
	e.view.start()
	t.Cleanup(e.view.stop)
	eventually.Holds(t, "the copy", e.Ready)
	s.Wipe()
	s.Run()
	s.put("a.web.skydns.test", `{"host":"192.0.2.9"}`)
	eventually.Holds(t, "what the other one has", func() bool {
		m, _ := ask(e, "web.skydns.test.", dns.TypeA)
		return text(m) == "NOERROR web.skydns.test. 300 IN A 192.0.2.9"
	})
}

// What does not fit into memory is asked for query by query.
func TestTooLarge(t *testing.T) {
	s := start(t)
	for i := range 50 {
		s.put(fmt.Sprintf("n%d.big.skydns.test", i), fmt.Sprintf(`{"host":"192.0.2.%d"}`, i))
	}
	e := s.plugin(2000)
	if m, err := ask(e, "n7.big.skydns.test.", dns.TypeA); err != nil || text(m) != "NOERROR n7.big.skydns.test. 300 IN A 192.0.2.7" {
		t.Errorf("%v %v", text(m), err)
	}
	if !e.view.large {
		t.Error("there is a copy")
	}
}

func TestLeases(t *testing.T) {
	s := start(t)
	lease, err := s.Client.Grant(context.Background(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	s.put("a.skydns.test", `{"host":"192.0.2.1"}`, etcdcv3.WithLease(lease.ID))
	s.put("b.skydns.test", `{"host":"192.0.2.1","ttl":7}`, etcdcv3.WithLease(lease.ID))
	e := s.plugin(defaultViewSize)
	for name, most := range map[string]uint32{"a.skydns.test.": 1000, "b.skydns.test.": 7} {
		m, err := ask(e, name, dns.TypeA)
		if err != nil || len(m.Answer) != 1 || m.Answer[0].Header().Ttl > most || m.Answer[0].Header().Ttl+20 < most {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
	e.MaxLeaseTTL = 100
	if m, err := ask(e, "a.skydns.test.", dns.TypeA); err != nil || m.Answer[0].Header().Ttl != 100 {
		t.Errorf("%v %v", m, err)
	}
	e.MinLeaseTTL, e.MaxLeaseTTL = 5000, 9000
	if m, err := ask(e, "a.skydns.test.", dns.TypeA); err != nil || m.Answer[0].Header().Ttl != 5000 {
		t.Errorf("%v %v", m, err)
	}
}

// Nobody there: SERVFAIL, with an error, for the zone itself, too.
func TestNobodyThere(t *testing.T) {
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{"http://" + loopback.Addr()}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	e := &Etcd{Zones: []string{"skydns.test."}, PathPrefix: "skydns", Client: client}
	defer e.OnShutdown()
	for _, q := range []dns.Question{
		{Name: "a.skydns.test.", Qtype: dns.TypeA}, {Name: "skydns.test.", Qtype: dns.TypeA}, {Name: "skydns.test.", Qtype: dns.TypeAAAA},
		{Name: "skydns.test.", Qtype: dns.TypeNS}, {Name: "skydns.test.", Qtype: dns.TypeTXT}, {Name: "skydns.test.", Qtype: dns.TypeMX},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		_, err := e.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion(q.Name, q.Qtype))
		if err == nil || rec.Msg == nil || rec.Msg.Rcode != dns.RcodeServerFailure || len(rec.Msg.Answer) != 0 {
			t.Errorf("%s %d: %v %v", q.Name, q.Qtype, rec.Msg, err)
		}
		cancel()
	}
}

// TestWhyNoConnection: a query whose time is over does not know why, so the client tells the log, once a minute.
func TestWhyNoConnection(t *testing.T) {
	out := logtest.Capture(t)
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{"http://" + loopback.Addr()}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "No connection: "); {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		client.Get(ctx, "a")
		cancel()
		if time.Now().After(deadline) {
			t.Fatal("no line")
		}
	}
	if text := out.String(); !strings.Contains(text, "[WARNING] plugin/etcd: No connection: ") || !strings.Contains(text, "connection refused") {
		t.Errorf("%s", text)
	}
	before := out.String()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if client.Get(ctx, "a"); out.String() != before {
		t.Errorf("%s", out.String())
	}
}
