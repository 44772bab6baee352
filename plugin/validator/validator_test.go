package validator

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"

	"github.com/miekg/dns"
)

func parseText(text string) (*settings, error) {
	c := caddy.NewTestController("dns", text)
	c.ServerBlockKeys = []string{"dns://.:53"}
	s := defaults()
	if err := directive.Parse(c, s); err != nil {
		return s, err
	}
	return s, s.finish()
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if want := directive.Doc().Syntax; err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

func TestBuiltin(t *testing.T) {
	s, err := parseText("validator")
	if err != nil {
		t.Fatal(err)
	}
	v := newValidator(s)
	v.keeper.publish()
	a, tags := s.anchors[rrset.Root], v.live.Load().tags
	if a == nil || len(a.DS) != 2 || len(tags) != 2 || !tags["20326"] || !tags["38696"] {
		t.Errorf("anchors %+v, tags %v", a, tags)
	}
}

// A byte order mark before anchors is no part of the first zone's name.
func TestMarkedAnchors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "anchors")
	text := "\uFEFF. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parseText("validator {\nanchor file " + path + "\n}")
	if err != nil || len(s.anchors) != 1 || s.anchors[rrset.Root] == nil {
		t.Errorf("got %v, %v", s.anchors, err)
	}
}

func TestBadOptions(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("; nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{
		`anchor "x. IN A 192.0.2.1"`: "neither DS nor DNSKEY", "anchor A": `anchor "A": it is no whole record`, `anchor "x. IN DNSKEY 385 3 8 AwEAAQ=="`: "revoked",
		`anchor "x. IN DS 1 13 2 0011"`: "a digest of type 2 has 32 octets, not 2", `anchor "x. IN DS 1 13 2"`: "anchor", `anchor "x. IN DNSKEY 257 3 13 AAAA"`: "a key of algorithm 13 has 64 octets, not 3",
		"anchor file /nowhere": "no such file",
		"anchor file " + empty: "has no record", "nta x 169h": "nta", `nta ""`: `invalid name ""`, "sha1 maybe": "insecure", "disable_algorithm 256": "disable_algorithm", "nsec3_iterations 151": "nsec3_iterations",
		"skew 2h 1h": "skew", "bogus_ttl 6m": "bogus_ttl", "budget x 1": "unknown budget", "budget checks 0": "checks", "validation_time soon": "invalid time", "other": "other",
	} {
		if _, err := parseText("validator {\n" + option + "\n}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", option, err, want)
		}
	}
}

var errNoReply = errors.New("no reply")

// source answers below the validator, from what a zone has signed.
type source struct {
	replies map[string]*dns.Msg
	anchor  string // a DS record
	asked   int
	put     func(bad bool, rr dns.RR) // signs a record, and has it answer
}

func (s *source) Name() string { return "source" }

func (s *source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	s.asked++
	m := s.replies[strings.ToLower(r.Question[0].Name)+dns.Type(r.Question[0].Qtype).String()]
	if m == nil || !r.CheckingDisabled || !r.IsEdns0().Do() {
		return dns.RcodeServerFailure, errNoReply
	}
	m = m.Copy()
	_, datagram := w.RemoteAddr().(*net.UDPAddr)
	cut := m.Truncated && datagram
	m.SetReply(r)
	m.Truncated = cut
	m.AuthenticatedData = true // which is nobody's word to take
	m.SetEdns0(1232, true)
	o := m.IsEdns0()
	o.Option = append(o.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeSynthesized})
	return 0, w.WriteMsg(m)
}

// generate makes k a key, and returns its private half. A tag of 0, which one key of 65,536 has, miekg/dns takes for none.
func generate(t testing.TB, k *dns.DNSKEY) crypto.PrivateKey {
	t.Helper()
	for {
		p, err := k.Generate(256)
		if err != nil {
			t.Fatal(err)
		}
		if k.KeyTag() != 0 {
			return p
		}
	}
}

// lab is a validator above a source that holds the signed zone example.
func lab(t testing.TB, options string) (*Validator, *source) {
	t.Helper()
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.", Rrtype: dns.TypeDNSKEY, Class: 1, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	p := generate(t, k)
	src := &source{replies: map[string]*dns.Msg{}}
	src.put = func(bad bool, rr dns.RR) {
		now := time.Now()
		g := &dns.RRSIG{
			Hdr: dns.RR_Header{Name: rr.Header().Name, Rrtype: dns.TypeRRSIG, Class: 1, Ttl: rr.Header().Ttl}, Algorithm: k.Algorithm, KeyTag: k.KeyTag(), SignerName: "example.",
			Inception: uint32(now.Add(-time.Hour).Unix()), Expiration: uint32(now.Add(24 * time.Hour).Unix()),
		}
		if err := g.Sign(p.(crypto.Signer), []dns.RR{rr}); err != nil {
			t.Fatal(err)
		}
		if bad {
			a := rr.(*dns.A)
			a.A = a.A.To4()
			a.A[3]++
		}
		src.replies[rr.Header().Name+dns.Type(rr.Header().Rrtype).String()] = &dns.Msg{Answer: []dns.RR{rr, g}}
	}
	src.put(false, k)
	for _, name := range []string{"www", "root-key-sentinel-is-ta-12345", "root-key-sentinel-not-ta-12345"} {
		src.put(false, test.A(name+".example. 300 IN A 192.0.2.1"))
	}
	src.put(false, test.CNAME("alias.example. 300 IN CNAME www.example."))
	src.put(true, test.A("bad.example. 300 IN A 192.0.2.1"))
	src.put(false, test.DS("sub.example. 300 IN DS 1 13 2 "+strings.Repeat("33", 32)))
	src.put(false, test.A("www.sub.example. 300 IN A 192.0.2.1")) // which is not its to sign
	src.replies["plain.test.A"] = &dns.Msg{Answer: []dns.RR{test.A("plain.test. 300 IN A 192.0.2.1")}}
	src.anchor = strings.ReplaceAll(k.ToDS(dns.SHA256).String(), "\t", " ")
	return above(t, src, options), src
}

// above is a validator above a source.
func above(t testing.TB, src *source, options string) *Validator {
	t.Helper()
	s, err := parseText(fmt.Sprintf("validator {\nanchor \"%s\"\n%s\n}", src.anchor, options))
	if err != nil {
		t.Fatal(err)
	}
	delete(s.anchors, rrset.Root)
	v := newValidator(s)
	v.Next = src
	for name, d := range v.nta {
		if err := v.negatives.set(name, time.Now().Add(d), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.keeper.load(); err != nil {
		t.Fatal(err)
	}
	v.keeper.publish()
	return v
}

func ask(t *testing.T, v *Validator, name string, change func(*dns.Msg)) (*dns.Msg, int, error) {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, dns.TypeA)
	if change != nil {
		change(m)
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := v.ServeDNS(context.Background(), rec, m)
	return rec.Msg, rcode, err
}

func do(m *dns.Msg) { m.SetEdns0(1232, true) }

func TestServe(t *testing.T) {
	v, src := lab(t, "")
	m, _, err := ask(t, v, "www.example.", do)
	if err != nil || !m.AuthenticatedData || len(m.Answer) != 2 || m.CheckingDisabled {
		t.Fatalf("DO: %v %v", m, err)
	}
	first := src.asked
	m, _, err = ask(t, v, "www.example.", nil)
	if err != nil || m.AuthenticatedData || len(m.Answer) != 1 || m.IsEdns0() != nil {
		t.Errorf("neither DO nor AD: %v %v", m, err)
	}
	if src.asked != first+1 {
		t.Errorf("what is known was asked for again: %d queries", src.asked-first)
	}
	if m, _, err = ask(t, v, "www.example.", func(m *dns.Msg) { m.AuthenticatedData = true }); err != nil || !m.AuthenticatedData {
		t.Errorf("AD: %v %v", m, err)
	}
	m, rcode, err := ask(t, v, "bad.example.", do)
	var why interface{ ExtendedError() (uint16, string) }
	if m != nil || rcode != dns.RcodeServerFailure || !errors.As(err, &why) {
		t.Fatalf("bogus: %v %d %v", m, rcode, err)
	}
	if code, _ := why.ExtendedError(); code != dns.ExtendedErrorCodeDNSBogus {
		t.Errorf("bogus: EDE %d", code)
	}
	if m, _, err = ask(t, v, "plain.test.", do); err != nil || m.AuthenticatedData || len(m.Answer) != 1 {
		t.Errorf("no anchor: %v %v", m, err)
	}
	cd := func(m *dns.Msg) { do(m); m.CheckingDisabled = true }
	if m, _, err = ask(t, v, "bad.example.", cd); err != nil || len(m.Answer) != 2 || m.AuthenticatedData || !m.CheckingDisabled {
		t.Errorf("CD: %v %v", m, err)
	}
}

func TestPermissiveAndNegative(t *testing.T) {
	v, _ := lab(t, "permissive")
	m, _, err := ask(t, v, "bad.example.", do)
	if err != nil || m.AuthenticatedData || len(m.Answer) != 2 || !explains(m, dns.ExtendedErrorCodeDNSBogus) {
		t.Errorf("permissive: %v %v", m, err)
	}
	v, _ = lab(t, "nta bad.example 1h")
	m, _, err = ask(t, v, "bad.example.", do)
	if err != nil || m.AuthenticatedData || !explains(m, 33) {
		t.Errorf("nta: %v %v", m, err)
	}
	if err := v.negatives.set(rrset.MustName("bad.example."), time.Now().Add(-time.Hour), false); err != nil {
		t.Fatal(err)
	}
	if m, _, err = ask(t, v, "bad.example.", do); err == nil {
		t.Errorf("nta that ended: %v", m)
	}
}

func explains(m *dns.Msg, code uint16) bool {
	for _, o := range m.IsEdns0().Option {
		if e, ok := o.(*dns.EDNS0_EDE); ok && e.InfoCode == code {
			return true
		}
	}
	return false
}

func TestSentinel(t *testing.T) {
	v, _ := lab(t, "")
	for known, is := range map[bool]string{true: "is", false: "is not"} {
		v.trusts(&trust{anchors: v.live.Load().anchors, tags: map[string]bool{"12345": known}})
		m, _, _ := ask(t, v, "root-key-sentinel-is-ta-12345.example.", do)
		n, _, _ := ask(t, v, "root-key-sentinel-not-ta-12345.example.", do)
		if known { // what is withheld is still a resolver's word
			m, n = n, m
		}
		if m == nil || m.Rcode != dns.RcodeServerFailure || !m.RecursionAvailable || len(m.Answer)+len(m.Ns) > 0 || n == nil || n.Rcode != dns.RcodeSuccess || !n.AuthenticatedData {
			t.Errorf("the anchor %s known: %v is to be withheld, not %v", is, m, n)
		}
	}
}

func TestMemoryForgets(t *testing.T) {
	g := generations[int, int]{most: 100}
	for i := range 1000 {
		g.put(i, i, 1)
		if _, ok := g.get(0); !ok {
			t.Fatal("what is asked for was forgotten")
		}
		if len(g.young)+len(g.old) > 200 {
			t.Fatalf("%d entries", len(g.young)+len(g.old))
		}
	}
	if _, ok := g.get(1); ok {
		t.Error("nothing was forgotten")
	}
}

// What takes the place of something smaller counts with what it takes: a zone whose names are bogus first, and have keys
// then, would take any amount of memory.
func TestMemoryCountsWhatReplaces(t *testing.T) {
	g := generations[int, int]{most: 100}
	for _, size := range []int{1, 9} {
		for i := range 90 {
			g.put(i, size, size)
		}
	}
	octets := 0
	for _, k := range g.young {
		octets += k.size
	}
	if len(g.young) == 0 || octets > 100 || octets != g.octets {
		t.Errorf("%d entries with %d octets, counted as %d", len(g.young), octets, g.octets)
	}
}

var _ plugin.WireHandler = (*Validator)(nil)
