package program

import (
	"cmp"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"

	"github.com/miekg/dns"
)

// signedRoot is an upstream that has a signed root zone with addresses, whose keys change. It lives as far ahead of the clock as the
// server that is tried out.
type signedRoot struct {
	t     *testing.T
	addr  string
	clock string // file

	mu      sync.Mutex
	ahead   time.Duration
	private map[string]crypto.Signer // by public key
	keys    []*dns.DNSKEY            // all of which sign the keys; the first signs the rest
	spoils  *dns.DNSKEY              // signs bad. and what is below it, unless it is nil
}

func newSignedRoot(t *testing.T) *signedRoot {
	t.Helper()
	z := &signedRoot{t: t, private: map[string]crypto.Signer{}, clock: filepath.Join(t.TempDir(), "clock")}
	up := dnstest.NewServer(z.ServeDNS)
	t.Cleanup(up.Close)
	z.addr = up.Addr
	t.Setenv(clock.Variable, z.clock)
	z.move(0)
	return z
}

// move has the time be so far ahead.
func (z *signedRoot) move(ahead time.Duration) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.ahead = ahead
	write(z.t, z.clock, fmt.Sprint(int64(ahead/time.Second)))
}

// key is a new key, which is not in the zone.
func (z *signedRoot) key() *dns.DNSKEY {
	for {
		k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
		p, err := k.Generate(256)
		if err != nil {
			z.t.Fatal(err)
		}
		if k.KeyTag() == 0 { // miekg/dns signs nothing with it
			continue
		}
		z.mu.Lock()
		defer z.mu.Unlock()
		z.private[k.PublicKey] = p.(crypto.Signer)
		return k
	}
}

// spoil has bad. signed by a key that is not in the zone, or well again if it is nil.
func (z *signedRoot) spoil(by *dns.DNSKEY) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.spoils = by
}

// anchor is the DS record of a key as a Corefile has it.
func anchor(k *dns.DNSKEY) string { return strings.ReplaceAll(k.ToDS(dns.SHA256).String(), "\t", " ") }

// has gives the zone other keys.
func (z *signedRoot) has(keys ...*dns.DNSKEY) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.keys = keys
}

// revoked is a key that says of itself that it is.
func revoked(k *dns.DNSKEY) *dns.DNSKEY {
	r := dns.Copy(k).(*dns.DNSKEY)
	r.Flags |= dns.REVOKE
	return r
}

func (z *signedRoot) sign(set []dns.RR, keys ...*dns.DNSKEY) []dns.RR {
	now := time.Now().Add(z.ahead)
	all := slices.Clone(set)
	for _, k := range keys {
		g := &dns.RRSIG{
			Hdr: dns.RR_Header{Ttl: 3600}, Algorithm: k.Algorithm, KeyTag: k.KeyTag(), SignerName: ".",
			Inception: uint32(now.Add(-time.Hour).Unix()), Expiration: uint32(now.Add(10 * 24 * time.Hour).Unix()),
		}
		if err := g.Sign(z.private[k.PublicKey], set); err != nil {
			z.t.Error(err)
		}
		all = append(all, g)
	}
	return all
}

func (z *signedRoot) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	name := strings.ToLower(q.Question[0].Name)
	switch q.Question[0].Qtype {
	case dns.TypeDNSKEY:
		var set []dns.RR
		for _, k := range z.keys {
			set = append(set, k)
		}
		m.Answer = z.sign(set, z.keys...)
	case dns.TypeA, dns.TypeSOA:
		text, by := " 300 IN A 192.0.2.1", z.keys[0]
		if q.Question[0].Qtype == dns.TypeSOA {
			text = " 300 IN SOA ns. host. 1 2 3 4 5"
		}
		if z.spoils != nil && dns.IsSubDomain("bad.", name) {
			by = z.spoils
		}
		rr, err := dns.NewRR(name + text)
		if err != nil {
			z.t.Error(err)
		}
		m.Answer = z.sign([]dns.RR{rr}, by)
	default:
		m.Rcode = dns.RcodeServerFailure
	}
	m.SetEdns0(1232, true)
	_ = w.WriteMsg(m)
}

// heard is what a client with DO hears of an address: return code, AD, and info codes.
func (s *server) heard(name string) (text string) {
	s.t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	m.SetEdns0(1232, true)
	r, _, err := (&dns.Client{Timeout: 8 * time.Second}).Exchange(m, s.addr)
	if err != nil {
		return err.Error()
	}
	text = dns.RcodeToString[r.Rcode]
	if r.AuthenticatedData {
		text += " AD"
	}
	if opt := r.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				text += fmt.Sprint(" ", e.InfoCode)
			}
		}
	}
	return text
}

// The keys of an anchor are rolled twice in half a year (RFC 5011). The process is killed every five days, each second time while it
// may be writing what it knows of them; the next one has it, and answers stay secure. The Corefile names the first key all the time.
func TestKeysRollWhileKilled(t *testing.T) {
	z := newSignedRoot(t)
	one, two, three := z.key(), z.key(), z.key()
	state := filepath.Join(t.TempDir(), "anchors")
	corefile := fmt.Sprintf(".:PORT {\nbind 127.0.0.1\nvalidator {\nanchor \"%s\"\nstate %s\nsignal off\n}\nforward . %s\n}\n",
		anchor(one), state, z.addr)
	const pause = 5
	began := func(day int) *server {
		z.move(time.Duration(day) * 24 * time.Hour)
		return serve(t, corefile)
	}
	keys := map[int][]*dns.DNSKEY{0: {one}, 10: {one, two}, 50: {two, revoked(one)}, 60: {two, revoked(one), three}, 110: {three, revoked(two)}, 150: {three}}
	states := map[int]string{
		0: "valid", 10: "valid addpend", 40: "valid valid", 50: "revoked valid", 60: "revoked valid addpend", 80: "removed valid addpend",
		90: "removed valid valid", 110: "removed revoked valid", 140: "removed removed valid",
	}
	want := ""
	for day := 0; day <= 180; day += pause {
		if k := keys[day]; k != nil {
			z.has(k...)
		}
		want = cmp.Or(states[day], want)
		s := began(day)
		if got := s.heard("www."); got != "NOERROR AD" {
			t.Fatalf("day %d: %s, with the keys %s", day, got, keyStates(state))
		}
		if day%(2*pause) == 0 {
			eventually.Holds(t, fmt.Sprintf("on day %d the keys are %s", day, want), func() bool { return keyStates(state) == want })
		}
		s.kill()
	}
	z.has(one) // by who has stolen it
	if got := began(181).heard("www."); got != "SERVFAIL 9" {
		t.Errorf("signed by the key that was revoked: %s", got)
	}
}

// keyStates is the states of keys in a file with states of keys.
func keyStates(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	var all []string
	for line := range strings.Lines(string(b)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "key" {
			all = append(all, words[2])
		}
	}
	return strings.Join(all, " ")
}

// kill ends the process as a loss of power would.
func (s *server) kill() {
	s.t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
}

// What a negative trust anchor names is not validated, and clients hear of that (RFC 7646), be it of the Corefile or of an operator, and
// though its failure was kept. It ends with its time, or five minutes behind the repair of the name.
func TestNotValidatedForAWhile(t *testing.T) {
	z := newSignedRoot(t)
	key := z.key()
	z.has(key)
	const broken, passed, whole = "SERVFAIL 6", "NOERROR 33", "NOERROR AD"
	begin := func(options string) *server {
		z.spoil(z.key())
		z.move(0)
		return serve(t, fmt.Sprintf(".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\ncache\nvalidator {\nanchor \"%s\"\nrfc5011 off\n%s\n}\nforward . %s\n}\n", anchor(key), options, z.addr))
	}
	hears := func(s *server, what, want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(20 * time.Second); got != want; time.Sleep(20 * time.Millisecond) {
			if got = s.heard("www.bad."); time.Now().After(end) {
				t.Fatalf("%s: %s, want %s", what, got, want)
			}
		}
		if got := s.heard("www."); got != whole {
			t.Errorf("%s, another name: %s, want %s", what, got, whole)
		}
		eventually.Holds(t, what+", it is listed as long as it holds", func() bool { return strings.Contains(s.must("anchors"), "bad.") == (want == passed) })
	}
	s := begin("nta bad 1h")
	hears(s, "from the Corefile", passed)
	z.move(61 * time.Minute)
	hears(s, "from the Corefile, an hour later", broken)
	s.kill()

	s = begin("")
	hears(s, "without", broken)
	s.must("nta", "add", "bad", "2h")
	hears(s, "added", passed)
	z.move(2*time.Hour + time.Minute)
	hears(s, "two hours later", broken)
	s.must("nta", "add", "bad", "24h")
	hears(s, "added again", passed)
	s.must("nta", "del", "bad")
	hears(s, "taken away", broken)
	s.must("nta", "add", "bad", "24h")
	hears(s, "added once more", passed)
	z.spoil(nil)
	z.move(2*time.Hour + 8*time.Minute)
	hears(s, "seven minutes later, mended", whole)
}
