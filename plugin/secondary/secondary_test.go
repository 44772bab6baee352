package secondary

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
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

// TestLife tells the story of a zone.
func TestLife(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	none := newPrimary(t)
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s %s\nfallthrough sub.example.org\n}", none.addr, p.addr))
	becomes(t, s, "a.example.org.", "SERVFAIL")
	if got := notify(t, s, "example.org.", "127.0.0.1"); got != 0 {
		t.Errorf("a notification for a zone that is not there: %d", got)
	}
	eventually.Holds(t, "the first failure", func() bool { return strings.Contains(out.String(), "masters failed to transfer") })
	eventually.Holds(t, "the failure is shown", func() bool { return s.ZoneStatus()[0].Failure != "" })
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	eventually.Holds(t, "no failure is shown", func() bool { return s.ZoneStatus()[0].Failure == "" })
	for name, want := range map[string]string{"x.example.org.": "NXDOMAIN", "x.sub.example.org.": "NOTZONE", "example.net.": "NOTZONE"} {
		if got := ask(t, s, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for _, want := range []string{
		"[ERROR] plugin/file: Failed to transfer `example.org.' from \"" + none.addr + `": the primary answers`,
		"[WARNING] plugin/secondary: All 'example.org.' masters failed to transfer, retrying in ",
		"[INFO] plugin/file: Transferred: example.org. from " + p.addr,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %s\nwant %s", out, want)
		}
	}

	p.set("example.org.", text(2, slow, "a A 192.0.2.8"))
	if got := notify(t, s, "example.org.", "192.0.2.99"); got != -1 {
		t.Errorf("a notification from anybody: %d", got)
	}
	if got := notify(t, s, "example.org.", "127.0.0.1"); got != 0 {
		t.Errorf("a notification: %d", got)
	}
	becomes(t, s, "a.example.org.", "192.0.2.8")
	if got := p.transfers(); !strings.HasSuffix(got, "AXFR IXFR") {
		t.Errorf("transfers: %s", got)
	}
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the check", func() bool {
		return strings.Contains(out.String(), "Notify from 127.0.0.1 for example.org.: no SOA serial increase seen")
	})
	for _, want := range []string{"Dropping notify from 192.0.2.99 for example.org.", "Notify from 127.0.0.1 for example.org.: checking transfer"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %s\nwant %s", out, want)
		}
	}

	p.refuses.Store(true)
	p.set("example.org.", text(3, slow, "a A 192.0.2.9"))
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the failed transfer", func() bool {
		return strings.Contains(out.String(), "[WARNING] plugin/secondary: Notify from 127.0.0.1 for example.org.: transfer failed: ")
	})
	if z := s.ZoneStatus()[0]; !strings.Contains(z.Failure, "REFUSED") || z.Failing.IsZero() || z.Serial != 2 {
		t.Errorf("shown is %+v", z)
	}

	p.down.Store(true)
	none.down.Store(true)
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the failure", func() bool {
		return strings.Contains(out.String(), "Notify from 127.0.0.1 for example.org.: failed primary check: ")
	})
	if got := ask(t, s, "a.example.org."); got != "192.0.2.8" {
		t.Errorf("the primary is down: %s", got)
	}
	if v, err := s.Version("example.org."); err != nil || v.Serial() != 2 {
		t.Errorf("to transfer on: %v", err)
	}
	if _, err := s.Version("a.example.org."); err != transfer.ErrNotAuthoritative {
		t.Errorf("to transfer on, another name: %v", err)
	}
}

// TestWentBack: a primary whose serial goes back is told of once, and has its zone fetched when it is newer again.
func TestWentBack(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(7, "1 1 1000", "a A 192.0.2.7"))
	s := begin(t, "secondary example.org {\ntransfer from "+p.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.set("example.org.", text(5, "1 1 1000", "a A 192.0.2.5"))
	want := "Zone example.org. is not fetched: " + p.addr + " has serial 5, and we have 7, which is newer"
	for range 3 {
		notify(t, s, "example.org.", "127.0.0.1")
		eventually.Holds(t, "the warning", func() bool { return strings.Contains(out.String(), want) })
		time.Sleep(100 * time.Millisecond)
	}
	if got := ask(t, s, "a.example.org."); got != "192.0.2.7" || strings.Count(out.String(), want) != 1 {
		t.Errorf("%s is served, and logged is %s", got, out)
	}
	p.set("example.org.", text(8, "1 1 1000", "a A 192.0.2.8"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.8")
}

// TestWentBackExpired: of a zone that has expired any version is taken, and stored.
func TestWentBackExpired(t *testing.T) {
	logtest.Capture(t)
	dir, p := t.TempDir(), newPrimary(t)
	p.set("example.org.", text(7, "1 1 2", "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.down.Store(true)
	becomes(t, s, "a.example.org.", "SERVFAIL")
	p.set("example.org.", text(5, slow, "a A 192.0.2.5"))
	p.down.Store(false)
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.5")
	eventually.Holds(t, "storing", func() bool { return readHead(filepath.Join(dir, "db.example.org")).serial == 5 })
}

// TestLaggingPrimaries: a version that one primary has is fetched when that one tells of it, though others that stand before it
// have not got it yet, or do not answer.
func TestLaggingPrimaries(t *testing.T) {
	out := logtest.Capture(t)
	lags, first := newPrimaryAt(t, "127.0.0.1"), newPrimaryAt(t, "127.0.0.2")
	for _, p := range []*primary{lags, first} {
		p.set("example.org.", text(1, slow, "a A 192.0.2.1"))
	}
	s := begin(t, "secondary example.org {\ntransfer from "+lags.addr+" "+first.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.1")
	first.set("example.org.", text(2, slow, "a A 192.0.2.2"))
	notify(t, s, "example.org.", "127.0.0.2")
	becomes(t, s, "a.example.org.", "192.0.2.2")

	// Of two notifications at once none is forgotten. The lagging one is behind us now, which is no news.
	first.set("example.org.", text(3, slow, "a A 192.0.2.3"))
	r := s.roster.replica("example.org.")
	r.told.add(netip.MustParseAddr("127.0.0.2"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.3")
	lags.set("example.org.", text(3, slow, "a A 192.0.2.3"))
	first.set("example.org.", text(4, slow, "a A 192.0.2.4"))
	r.told.add(netip.MustParseAddr("127.0.0.2"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.4")

	// Without a notification, too, who is behind us does not speak for the others.
	idle := handler(t, "secondary", "secondary example.org {\ntransfer from "+first.addr+"\n}").(Secondary).roster.replica("example.org.")
	idle.first(t.Context())
	idle.source.primaries = []string{lags.addr, first.addr}
	first.set("example.org.", text(5, slow, "a A 192.0.2.5"))
	if err := idle.refresh(t.Context(), ""); err != nil || idle.zone.Current().Serial() != 5 {
		t.Errorf("%v, and version %d is served", err, idle.zone.Current().Serial())
	}
	if strings.Contains(out.String(), "is not fetched") {
		t.Errorf("logged %s", out)
	}
}

// TestStorm: a thousand notifications in a row cost a few queries and lines, and what is new comes all the same.
func TestStorm(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	s := begin(t, "secondary example.org {\ntransfer from "+p.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.7")
	before, begun := p.queries.Load(), time.Now()
	for range 1000 {
		notify(t, s, "example.org.", "127.0.0.1")
		notify(t, s, "example.org.", "192.0.2.99")
		time.Sleep(500 * time.Microsecond)
	}
	took := time.Since(begun)
	most := 6 + int64(took/time.Second)
	if n := p.queries.Load() - before; n > most {
		t.Errorf("%d queries in %v", n, took)
	}
	if n := strings.Count(out.String(), "otify"); n > int(2*most)+10*int(1+took/time.Second+1) {
		t.Errorf("%d lines in %v", n, took)
	}
	p.set("example.org.", text(2, slow, "a A 192.0.2.8"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.8")
}

// TestTimers: the zone is looked at as its SOA record tells, expires, and comes back.
func TestTimers(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, "1 1 2", "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\n}", p.addr))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.down.Store(true)
	becomes(t, s, "a.example.org.", "SERVFAIL")
	if !strings.Contains(out.String(), "Zone example.org. is expired") {
		t.Errorf("logged %s", out)
	}
	if _, err := s.Version("example.org."); err == nil {
		t.Error("an expired zone is transferred on")
	}
	p.down.Store(false)
	becomes(t, s, "a.example.org.", "192.0.2.7")
}

// TestExpire: what is too old is not served, to the moment.
func TestExpire(t *testing.T) {
	now := time.Now()
	z, err := file.Parse(strings.NewReader(text(1, "100 50 1000")), "example.org.", "db", -1)
	if err != nil {
		t.Fatal(err)
	}
	r := newReplica("example.org.", new(source), nil)
	if got := r.expire(now, now.Add(time.Hour)); got != time.Hour {
		t.Errorf("without data: %s", got)
	}
	if err := r.serve(z.Current(), now); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at, next, wait time.Duration
		expired        bool
	}{{0, 105, 105, false}, {0, 2000, 1000, false}, {999, 1050, 1, false}, {1000, 1050, 50, true}} {
		got := r.expire(now.Add(tc.at*time.Second), now.Add(tc.next*time.Second))
		if got != tc.wait*time.Second || r.zone.Expired != tc.expired {
			t.Errorf("after %d s: wait %s, expired %v", tc.at, got, r.zone.Expired)
		}
	}
}

func TestSigned(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\ntsig key.example.org hmac-sha512\n}", p.addr))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.set("example.org.", text(2, slow, "a A 192.0.2.8"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.8")
	if strings.Contains(out.String(), "ERROR") {
		t.Errorf("logged %s", out)
	}
	bad := &source{key: s.roster.replica("example.org.").source.key}
	if err := bad.prepare(func(string) (keyring.Key, bool) { return keyring.Key{}, false }); err == nil || !strings.Contains(err.Error(), `there is no key "key.example.org."`) {
		t.Errorf("a key that is not there: %v", err)
	}
}

func TestDigest(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "@ ZONEMD 1 1 1 "+strings.Repeat("00", 48)))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nzonemd\n}", p.addr))
	eventually.Holds(t, "the refusal", func() bool { return strings.Contains(out.String(), "the ZONEMD record does not match the zone's data") })
	if got := ask(t, s, "ns.example.org."); got != "SERVFAIL" {
		t.Errorf("got %s", got)
	}
}

// TestLimits: a zone that is too large leaves the one before.
func TestLimits(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nmax_records 8\nmax_octets 10000\nmax_time 1s\n}", p.addr))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.set("example.org.", text(2, slow, "a A 192.0.2.8", "$GENERATE 1-20 h$ A 192.0.2.1"))
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the refusal", func() bool { return strings.Contains(out.String(), "more than 8 records") })
	if got := ask(t, s, "a.example.org."); got != "192.0.2.7" {
		t.Errorf("got %s", got)
	}
}

// TestStorage: a zone that is stored is served at once, without a primary, until it expires.
func TestStorage(t *testing.T) {
	out := logtest.Capture(t)
	dir := filepath.Join(t.TempDir(), "zones")
	p := newPrimary(t)
	p.set("example.org.", text(1, "7200 3600 10000", "a A 192.0.2.7", `odd\.name TXT "a\"b" "\200"`, `null NULL \# 3 00ff3b`))
	input := fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir)
	first := begin(t, input)
	becomes(t, first, "a.example.org.", "192.0.2.7")
	path := filepath.Join(dir, "db.example.org")
	eventually.Holds(t, "storing", func() bool { _, err := os.Stat(path); return err == nil })
	first.roster.stop()
	p.down.Store(true)

	second := begin(t, input)
	becomes(t, second, "a.example.org.", "192.0.2.7")
	if !strings.Contains(out.String(), "Loaded: example.org. from "+path) {
		t.Errorf("logged %s", out)
	}
	was, is := first.roster.replica("example.org.").zone.Current(), second.roster.replica("example.org.").zone.Current()
	if a, b := len(recordsOf(was)), len(recordsOf(is)); a != b {
		t.Errorf("%d records of %d", b, a)
	}
	for i, rr := range recordsOf(was) {
		if got := recordsOf(is)[i]; got.String() != rr.String() {
			t.Errorf("got %s, want %s", got, rr)
		}
	}
	second.roster.stop()

	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-10001*time.Second)); err != nil {
		t.Fatal(err)
	}
	third := begin(t, input)
	time.Sleep(50 * time.Millisecond)
	if got := ask(t, third, "a.example.org."); got != "SERVFAIL" {
		t.Errorf("a zone that has expired: %s", got)
	}
	// A look that finds nothing new says that what is stored is right.
	p.down.Store(false)
	notify(t, third, "example.org.", "127.0.0.1")
	becomes(t, third, "a.example.org.", "192.0.2.7")
	eventually.Holds(t, "the file's new time", func() bool {
		info, err := os.Stat(path)
		return err == nil && time.Since(info.ModTime()) < time.Minute
	})
	third.roster.stop()
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	fourth := begin(t, input)
	becomes(t, fourth, "a.example.org.", "192.0.2.7")
	if !strings.Contains(out.String(), "Zone example.org.: what is stored is of no use: ") {
		t.Errorf("logged %s", out)
	}
}

const catalogHead = "$TTL 300\n@ SOA invalid. invalid. %d 7200 3600 1209600 300\n@ NS invalid.\nversion TXT \"2\"\n"

// TestCatalog follows a catalog through its versions.
func TestCatalog(t *testing.T) {
	out := logtest.Capture(t)
	dir := t.TempDir()
	p := newPrimary(t)
	for i, name := range []string{"one.test.", "two.test.", "three.example.", "own.test."} {
		p.set(name, text(1, slow, fmt.Sprintf("a A 192.0.2.%d", i+1)))
	}
	version := func(serial int, lines ...string) {
		p.set("catalog.example.", fmt.Sprintf(catalogHead, serial)+strings.Join(lines, "\n")+"\n")
	}
	version(1, "m1.zones PTR one.test.", "m3.zones PTR three.example.", "m4.zones PTR own.test.")
	s := begin(t, fmt.Sprintf("secondary catalog.example {\ntransfer from %s\ncatalog test\nstorage %s\n}\nsecondary own.test {\ntransfer from %s\n}", p.addr, dir, p.addr))
	becomes(t, s, "a.one.test.", "192.0.2.1")
	becomes(t, s, "a.own.test.", "192.0.2.4")
	step := func(want ...string) {
		t.Helper()
		for _, w := range want {
			eventually.Holds(t, w, func() bool { return strings.Contains(out.String(), w) })
		}
	}
	step("Parsed catalog zone catalog.example. with 3 member zones", "Added catalog member zone one.test. from catalog catalog.example.",
		"Skipped 1 member zones from catalog catalog.example.: outside configured member zones", "Skipping catalog member zone own.test. from catalog.example.: zone already exists")
	if got := ask(t, s, "a.three.example."); got != "NOTZONE" {
		t.Errorf("a member outside: %s", got)
	}
	stored := filepath.Join(dir, "db.one.test")
	eventually.Holds(t, "storing", func() bool { _, err := os.Stat(stored); return err == nil })

	version(2, "m1.zones PTR one.test.", "m2.zones PTR two.test.")
	notify(t, s, "catalog.example.", "127.0.0.1")
	becomes(t, s, "a.two.test.", "192.0.2.2")

	p.set("one.test.", text(1, slow, "a A 192.0.2.77")) // the same serial, but another zone
	version(3, "other.zones PTR one.test.", "m2.zones PTR two.test.")
	notify(t, s, "catalog.example.", "127.0.0.1")
	step("Reset catalog member zone one.test. from catalog catalog.example.")
	becomes(t, s, "a.one.test.", "192.0.2.77")

	version(4, "other.zones PTR one.test.", "other.zones PTR two.test.") // broken
	notify(t, s, "catalog.example.", "127.0.0.1")
	step("catalog member other.zones.catalog.example. must have exactly one PTR record")
	if got := ask(t, s, "a.two.test."); got != "192.0.2.2" {
		t.Errorf("a broken catalog: %s", got)
	}

	version(5, "m2.zones PTR two.test.")
	notify(t, s, "catalog.example.", "127.0.0.1")
	becomes(t, s, "a.one.test.", "NOTZONE")
	step("Removed catalog member zone one.test. from catalog catalog.example.")
	eventually.Holds(t, "forgetting", func() bool { _, err := os.Stat(stored); return os.IsNotExist(err) })
	if got := ask(t, s, "a.own.test."); got != "192.0.2.4" {
		t.Errorf("the Corefile's zone: %s", got)
	}
}

func TestSetup(t *testing.T) {
	setup, err := caddy.DirectiveAction("dns", "secondary")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ input, want string }{
		{"secondary example.org {\ntransfer from 192.0.2.1 [2001:db8::1]:5353\ntransfer from 192.0.2.2\ntsig k\nstorage d\nzonemd\nmax_records 5\nmax_octets 600\nmax_time 5m\nfallthrough\nupstream\n}", ""},
		{"secondary", "secondary zones require a transfer from property"},
		{"secondary {\ncatalog\n}", "secondary zones require a transfer from property"},
		{"secondary {\ntransfer from *\n}", "can't use '*' in transfer from"},
		{"secondary {\ntransfer from\n}", "Wrong argument count"},
		{"secondary {\ntransfer from ns.example.org\n}", "must specify an IP address: `ns.example.org'"},
		{"secondary {\ntransfer from 192.0.2.1:99999\n}", `invalid port "99999" in "192.0.2.1:99999": must be a number from 1 to 65535`},
		{"secondary {\ntransfer from tls://[2001:db8::1]:dot\n}", `invalid port "dot" in "[2001:db8::1]:dot": must be a number from 1 to 65535`},
		{"secondary {\ntransfer to 192.0.2.1\n}", "unknown property to"},
		{"secondary {\ntransferr from 192.0.2.1\n}", "unknown property 'transferr'"},
		{"secondary {\ntransfer from 192.0.2.1\ncatalog :\n}", `invalid catalog member zone ":"`},
		{"secondary {\ntransfer from 192.0.2.1\ntsig k md5\n}", `unknown algorithm "md5"`},
		{"secondary {\ntransfer from 192.0.2.1\nmax_time 1ms\n}", "max_time"},
		{"secondary a..b {\ntransfer from 192.0.2.1\n}", `invalid zone "a..b"`},
	} {
		err := setup(caddy.NewTestController("dns", tc.input))
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "plugin/secondary: ")) {
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		}
	}
	s := handler(t, "secondary", "secondary c.example {\ntransfer from 192.0.2.1\ncatalog EXAMPLE.ORG a.test\ncatalog b.test\n}").(Secondary)
	if got := s.roster.catalogs[0].members; !slices.Equal(got, []string{"example.org.", "a.test.", "b.test."}) || !slices.Equal(s.Zones.Names, []string{"c.example."}) {
		t.Errorf("members %v, zones %v", got, s.Zones.Names)
	}
	s = handler(t, "secondary", "secondary c.example {\ntransfer from 192.0.2.1\ncatalog example.org\ncatalog\n}").(Secondary)
	if got := s.roster.catalogs[0].members; len(got) != 0 {
		t.Errorf("members %v", got)
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}

// TestRooms: a primary that says nothing is left alone for a while, by all zones.
func TestRooms(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow))
	r := newReplica("example.org.", &source{primaries: []string{p.addr}}, newRooms())
	now := time.Now()
	r.rooms.silent(p.addr, now)
	if _, err := r.serial(t.Context(), p.addr); !errors.Is(err, fetch.ErrConnect) || p.queries.Load() != 0 {
		t.Errorf("%v, %d queries", err, p.queries.Load())
	}
	if r.rooms.isSilent(p.addr, now.Add(silence)) || r.rooms.isSilent("192.0.2.1:53", now) {
		t.Error("left alone for too long, or for another's silence")
	}
	r.rooms.silent(p.addr, now.Add(-silence))
	if serial, err := r.serial(t.Context(), p.addr); err != nil || serial != 1 {
		t.Errorf("serial %d, %v", serial, err)
	}
	for range maxChecks {
		enter(t.Context(), r.rooms.checks)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.serial(ctx, p.addr); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without room: %v", err)
	}
}

// A primary may be asked over TLS (RFC 9103): its certificate has to be good.
func TestTransferOverTLS(t *testing.T) {
	const certs = "../../test/testdata/readme/"
	p := newPrimary(t)
	p.set("example.org.", text(1, "7200 3600 10000", "a A 192.0.2.7"))
	pair, err := tls.LoadX509KeyPair(certs+"cert.pem", certs+"key.pem")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"dot"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var agreed atomic.Value
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if conn.(*tls.Conn).Handshake() != nil {
					return
				}
				agreed.Store(conn.(*tls.Conn).ConnectionState().NegotiatedProtocol)
				to, err := net.Dial("tcp", p.addr)
				if err != nil {
					return
				}
				defer to.Close()
				go io.Copy(to, conn)
				io.Copy(conn, to)
			}()
		}
	}()
	good := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from tls://%s\ntls %sca.pem\n}", l.Addr(), certs))
	becomes(t, good, "a.example.org.", "192.0.2.7")
	if agreed.Load() != "dot" {
		t.Errorf("agreed on %v", agreed.Load())
	}
	before := p.queries.Load()
	for _, input := range []string{"", "tls " + certs + "ca.pem\ntls_servername other.example.net\n"} {
		bad := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from tls://%s\n%s}", l.Addr(), input))
		time.Sleep(100 * time.Millisecond)
		if got := ask(t, bad, "a.example.org."); got != "SERVFAIL" || p.queries.Load() != before {
			t.Errorf("%q: %s", input, got)
		}
	}
}
