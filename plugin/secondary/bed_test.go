package secondary

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// text is a zone with that serial, timers in seconds, and hosts.
func text[N int | uint32](serial N, timers string, hosts ...string) string {
	s := fmt.Sprintf("$TTL 300\n@ SOA ns hostmaster %d %s 300\n@ NS ns\nns A 192.0.2.1\n", serial, timers)
	for _, h := range hosts {
		s += h + "\n"
	}
	return s
}

const slow = "7200 3600 1209600"

// primary is a server with zones to transfer.
type primary struct {
	t        testing.TB
	addr     string
	down     atomic.Bool // it does not answer
	refuses  atomic.Bool // no transfers
	transfer *transfer.Transfer
	queries  atomic.Int64

	mu    sync.Mutex
	zones map[string]*file.Zone
	kinds []string // of transfers
}

// findKey looks up a key of secrets.
func findKey(name string) (keyring.Key, bool) {
	secret, ok := secrets[name]
	return keyring.Key{Secret: secret}, ok
}

// secrets are the keys of a primary that has some.
var secrets = map[string]string{"key.example.org.": "c2VjcmV0LW9mLXRoZS10ZXN0"}

func newPrimary(t testing.TB) *primary { return newPrimaryAt(t, "127.0.0.1") }

func newPrimaryAt(t testing.TB, host string) *primary {
	t.Helper()
	p := &primary{t: t, zones: map[string]*file.Zone{}}
	x := handler(t, "transfer", "transfer . {\nto *\n}").(*transfer.Transfer)
	x.Transferers = []transfer.Transferer{file.File{ZoneLookupFunc: p.lookup}}
	x.Next = file.File{ZoneLookupFunc: p.lookup}
	p.transfer = x
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	s := &dns.Server{Listener: l, TsigSecret: secrets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		p.queries.Add(1)
		if p.down.Load() || r.IsTsig() != nil && w.TsigStatus() != nil {
			w.Close()
			return
		}
		if typ := r.Question[0].Qtype; typ != dns.TypeSOA {
			p.mu.Lock()
			p.kinds = append(p.kinds, dns.Type(typ).String())
			p.mu.Unlock()
			if p.refuses.Load() {
				w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeRefused))
				return
			}
		}
		rec := dnstest.NewMultiRecorder(w)
		rcode, _ := x.ServeDNS(context.Background(), &signer{rec, r}, r)
		if !plugin.ClientWrite(rcode) {
			w.WriteMsg(new(dns.Msg).SetRcode(r, rcode))
		}
	})}
	done, started := make(chan struct{}), make(chan struct{})
	s.NotifyStartedFunc = func() { close(started) }
	go func() {
		defer close(done)
		s.ActivateAndServe()
	}()
	<-started // one that has not started does not end
	t.Cleanup(func() {
		s.Shutdown()
		<-done
	})
	return p
}

// signer signs what answers a signed query, but transfers, which do so themselves.
type signer struct {
	dns.ResponseWriter
	r *dns.Msg
}

func (s *signer) WriteMsg(m *dns.Msg) error {
	if k := s.r.IsTsig(); k != nil && m.IsTsig() == nil {
		m.SetTsig(k.Hdr.Name, k.Algorithm, 300, time.Now().Unix())
	}
	return s.ResponseWriter.WriteMsg(m)
}

func (p *primary) lookup(name string) (string, *file.Zone, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for zone, z := range p.zones {
		if dns.IsSubDomain(zone, name) {
			return zone, z, true
		}
	}
	return "", nil, false
}

// set makes a zone be of that text; "" takes it away.
func (p *primary) set(name, text string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == "" {
		delete(p.zones, name)
		return
	}
	parsed, err := file.Parse(strings.NewReader(text), name, "db", -1)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.zones[name] == nil {
		p.zones[name] = file.NewZone(name, "")
		p.zones[name].Announce(p.transfer)
	}
	p.zones[name].Replace(parsed.Current())
}

func (p *primary) transfers() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.kinds, " ")
}

// handler is the handler of a directive of any plugin.
func handler(t testing.TB, name, input string) plugin.Handler {
	t.Helper()
	c := caddy.NewTestController("dns", input)
	setup, err := caddy.DirectiveAction("dns", name)
	if err == nil {
		err = setup(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](nil)
}

// begin starts a secondary, and ends it with the test.
func begin(t testing.TB, input string) Secondary {
	t.Helper()
	s := handler(t, "secondary", input).(Secondary)
	for _, z := range s.roster.replicas {
		if err := z.source.prepare(findKey); err != nil {
			t.Fatal(err)
		}
	}
	s.roster.start(nil)
	t.Cleanup(s.roster.stop)
	return s
}

// ask tells the rcode, or the address that the last answer has; both lanes say the same.
func ask(t testing.TB, s Secondary, name string) (answer string) {
	t.Helper()
	for range 3 { // the zone may change between the lanes
		var agree bool
		if answer, agree = askOnce(t, s, name); agree {
			return answer
		}
	}
	t.Errorf("%s: %s, but not so in the wire lane", name, answer)
	return answer
}

// askOnce also reports whether both lanes say the same.
func askOnce(t testing.TB, s Secondary, name string) (answer string, agree bool) {
	t.Helper()
	s.Next = test.NextHandler(dns.RcodeNotZone, nil)
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := s.ServeDNS(context.Background(), rec, m)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	p, _ := m.Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	if !q.Parse(p) {
		t.Fatal(name)
	}
	out := s.ServeWire(context.Background(), &w, &q)
	agree = rcode == dns.RcodeNotZone || out == wire.Done && w.Rcode() == rcode
	if rec.Msg != nil && len(rec.Msg.Answer) > 0 {
		return rec.Msg.Answer[len(rec.Msg.Answer)-1].(*dns.A).A.String(), agree
	}
	return dns.RcodeToString[rcode], agree
}

// becomes waits until a name is answered so.
func becomes(t testing.TB, s Secondary, name, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(8 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = ask(t, s, name); got == want {
			return
		}
	}
	t.Fatalf("%s: got %s, want %s", name, got, want)
}

// notify sends a notification, and tells the rcode of the answer, -1 if there is none.
func notify(t testing.TB, s Secondary, name, from string) int {
	t.Helper()
	rec := dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: from})
	if rcode, err := s.ServeDNS(context.Background(), rec, new(dns.Msg).SetNotify(name)); rcode != 0 || err != nil {
		t.Errorf("rcode %d, %v", rcode, err)
	}
	if rec.Msg == nil {
		return -1
	}
	if rec.Msg.Opcode != dns.OpcodeNotify || !rec.Msg.Response {
		t.Errorf("answered %v", rec.Msg)
	}
	return rec.Msg.Rcode
}
