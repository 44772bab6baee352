package file_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/file/tree"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// What other people's plugins do with zones: put them together by hand, read them with Parse, walk and serve them.

const porchZone = `$ORIGIN example.org.
$TTL 300
@ SOA Ns Hostmaster 7 7200 3600 1209600 60
@ NS ns
ns A 192.0.2.1
www CNAME ns
*.w TXT "any"
a.ent TXT "x"
sub NS NS.sub
sub DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000
ns.sub A 192.0.2.4
deep.sub TXT "occluded"
_s._tcp SRV 1 2 3 NS
`

func record(t testing.TB, text string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}

func parse(t testing.TB, text string) *file.Zone {
	t.Helper()
	z, err := file.Parse(strings.NewReader(text), "example.org.", "db.example.org", 0)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// byHand is a zone as others put it together.
func byHand(t testing.TB) *file.Zone {
	t.Helper()
	z := file.NewZone("example.org.", "")
	z.SOA = test.SOA("example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 1 7200 3600 1209600 60")
	for _, rr := range []dns.RR{test.NS("example.org. 300 IN NS ns.example.org."), test.A("NS.example.org. 300 IN A 192.0.2.1"), test.CNAME("www.example.org. 300 IN CNAME ns.example.org.")} {
		if err := z.Insert(rr); err != nil {
			t.Fatal(err)
		}
	}
	return z
}

func lookup(z *file.Zone, name string, typ uint16) (string, file.Result) {
	state := request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion(name, typ)}
	answer, ns, extra, result := z.Lookup(context.Background(), state, state.Name())
	var s []string
	for i, rrs := range [][]dns.RR{answer, ns, extra} {
		for _, rr := range rrs {
			s = append(s, []string{"an ", "ns ", "ar "}[i]+rr.Header().Name+" "+dns.Type(rr.Header().Rrtype).String())
		}
	}
	return strings.Join(s, ", "), result
}

func TestLookup(t *testing.T) {
	read, hand := parse(t, porchZone), byHand(t)
	for _, tc := range []struct {
		z      *file.Zone
		name   string
		typ    uint16
		want   string
		result file.Result
	}{
		{read, "ns.example.org.", dns.TypeA, "an ns.example.org. A, ns example.org. NS", file.Success},
		{read, "WWW.example.org.", dns.TypeA, "an www.example.org. CNAME, an ns.example.org. A, ns example.org. NS", file.Success},
		{read, "x.w.example.org.", dns.TypeTXT, "an x.w.example.org. TXT, ns example.org. NS", file.Success},
		{read, "nope.example.org.", dns.TypeA, "ns example.org. SOA", file.NameError},
		{read, "ns.example.org.", dns.TypeTXT, "ns example.org. SOA", file.NoData},
		{read, "ent.example.org.", dns.TypeTXT, "ns example.org. SOA", file.Success},
		{read, "deep.sub.example.org.", dns.TypeTXT, "ns sub.example.org. NS, ar ns.sub.example.org. A", file.Delegation},
		{read, "example.org.", dns.TypeNS, "an example.org. NS, ar ns.example.org. A", file.Success},
		{hand, "www.example.org.", dns.TypeA, "an www.example.org. CNAME, an ns.example.org. A, ns example.org. NS", file.Success},
		{hand, "example.org.", dns.TypeSOA, "an example.org. SOA, ns example.org. NS", file.Success},
		{file.NewZone("example.org.", ""), "example.org.", dns.TypeSOA, "", file.ServerFailure},
	} {
		if got, result := lookup(tc.z, tc.name, tc.typ); got != tc.want || result != tc.result {
			t.Errorf("%s %s: got %q, %d, want %q, %d", tc.name, dns.Type(tc.typ), got, result, tc.want, tc.result)
		}
	}
}

// TestLiterals serves File and Zones literals in both lanes.
func TestLiterals(t *testing.T) {
	f := file.File{
		Next:  plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeNotImplemented, nil }),
		Zones: file.Zones{Z: map[string]*file.Zone{"example.org.": parse(t, porchZone), "empty.org.": nil}, Names: []string{"example.org.", "empty.org."}},
	}
	for _, tc := range []struct {
		name           string
		rcode, answers int
	}{{"www.example.org.", dns.RcodeSuccess, 2}, {"nope.example.org.", dns.RcodeNameError, 0}, {"www.empty.org.", dns.RcodeServerFailure, 0}, {"example.net.", dns.RcodeNotImplemented, 0}} {
		m := new(dns.Msg).SetQuestion(tc.name, dns.TypeA)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rcode, err := f.ServeDNS(context.Background(), rec, m)
		if rcode != tc.rcode || err != nil || rec.Msg != nil && len(rec.Msg.Answer) != tc.answers {
			t.Errorf("%s: %d %v %v", tc.name, rcode, err, rec.Msg)
		}
		p, _ := m.Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(p) {
			t.Fatal(tc.name)
		}
		switch out := f.ServeWire(context.Background(), &w, &q); {
		case tc.rcode == dns.RcodeNotImplemented:
			if out != wire.Unpack {
				t.Errorf("%s: outcome %d", tc.name, out)
			}
		case out != wire.Done || w.Rcode() != tc.rcode || w.Holds() && w.Count(wire.Answer) != tc.answers:
			t.Errorf("%s: outcome %d, rcode %d", tc.name, out, w.Rcode())
		}
	}
}

func TestZoneLookupFunc(t *testing.T) {
	asked := ""
	f := file.File{ZoneLookupFunc: func(qname string) (string, *file.Zone, bool) {
		asked = qname
		return "example.org.", nil, true
	}}
	rcode, _ := f.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("Www.example.org.", dns.TypeA))
	if rcode != dns.RcodeServerFailure || asked != "www.example.org." {
		t.Errorf("rcode %d, asked for %q", rcode, asked)
	}
}

func TestInsert(t *testing.T) {
	z := byHand(t)
	for _, tc := range []struct{ rr, want string }{
		{"Sub.Example.org. 300 IN NS NS.Sub.Example.org.", "sub.example.org.\t300\tIN\tNS\tns.sub.example.org."},
		{"mx.example.org. 300 IN MX 10 MX.example.net.", "mx.example.org.\t300\tIN\tMX\t10 mx.example.net."},
		{"h.example.org. 300 IN HTTPS 1 Svc.example.net.", "h.example.org.\t300\tIN\tHTTPS\t1 svc.example.net."},
		{"_S._tcp.example.org. 300 IN SRV 1 2 3 Host.example.net.", "_S._tcp.example.org.\t300\tIN\tSRV\t1 2 3 Host.example.net."},
		{`a\046b.example.org. 300 IN TXT "x"`, "a\\.b.example.org.\t300\tIN\tTXT\t\"x\""},
	} {
		rr := record(t, tc.rr)
		before := rr.String()
		if err := z.Insert(rr); err != nil {
			t.Fatal(err)
		}
		if rr.String() != before {
			t.Errorf("the record given was changed: %s", rr)
		}
		e, ok := z.Search(rr.Header().Name)
		if !ok || e.All()[0].String() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.rr, e, tc.want)
		}
	}
	if err := z.Insert(record(t, "x.example.org. 300 IN NSEC3PARAM 1 0 0 -")); err == nil || !strings.Contains(err.Error(), "NSEC3 zone is not supported, dropping RR: x.example.org. for zone: example.org.") {
		t.Errorf("NSEC3PARAM: %v", err)
	}
	// Another SOA record takes the place of the first, and is served at once.
	if err := z.Insert(test.SOA("example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 2 7200 3600 1209600 60")); err != nil || z.SOASerialIfDefined() != 2 {
		t.Errorf("%v, serial %d", err, z.SOASerialIfDefined())
	}
	z.SOA = test.SOA("example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 3 7200 3600 1209600 60")
	if z.SOASerialIfDefined() != 3 {
		t.Errorf("serial %d", z.SOASerialIfDefined())
	}
}

// TestInsertWhileServing: the race detector looks on; what Insert returned for is answered.
func TestInsertWhileServing(t *testing.T) {
	for what, z := range map[string]*file.Zone{"by hand": byHand(t), "parsed": parse(t, porchZone)} {
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if got, result := lookup(z, "www.example.org.", dns.TypeA); result != file.Success {
						t.Errorf("%s: %s %d", what, got, result)
						return
					}
				}
			})
		}
		for i := range 50 {
			name := fmt.Sprintf("new%d.example.org.", i)
			if err := z.Insert(test.A(name + " 300 IN A 192.0.2.9")); err != nil {
				t.Error(err)
			}
			if err := z.Insert(test.NS("example.org. 300 IN NS " + name)); err != nil {
				t.Error(err)
			}
			if got, result := lookup(z, name, dns.TypeA); result != file.Success || !strings.HasPrefix(got, "an "+name) {
				t.Errorf("%s: %s: %s %d", what, name, got, result)
			}
		}
		close(done)
		wg.Wait()
	}
}

// walks is what the walks of a zone show: names with types, those that are not authoritative marked.
func walks(t *testing.T, z *file.Zone) string {
	t.Helper()
	var auth, plain []string
	if err := z.AuthWalk(func(e *tree.Elem, sets map[uint16][]dns.RR, auths bool) error {
		s := strings.TrimSuffix(e.Name(), ".example.org.")
		for _, typ := range e.Types() {
			s += fmt.Sprintf(" %s/%d", dns.Type(typ), len(sets[typ]))
		}
		if !auths {
			s += "!"
		}
		auth = append(auth, s)
		return nil
	}); err != nil {
		t.Error(err)
	}
	stop := errors.New("stop")
	if err := z.Walk(func(e *tree.Elem, _ map[uint16][]dns.RR) error {
		if plain = append(plain, e.Name()); len(plain) == 2 {
			return stop
		}
		return nil
	}); !errors.Is(err, stop) || len(plain) != 2 {
		t.Errorf("Walk: %v after %d names", err, len(plain))
	}
	return strings.Join(auth, ", ")
}

// TestStoreOrTree: a zone shows the same whether its records are in the tree, or in the store as Load puts them there.
func TestStoreOrTree(t *testing.T) {
	parsed := parse(t, porchZone)
	stored := file.NewZone("example.org.", "db.example.org")
	stored.Replace(parsed.Current())
	const want = "_s._tcp SRV/1, a.ent TXT/1, ns A/1, sub NS/1 DS/1, deep.sub TXT/1!, ns.sub A/1!, *.w TXT/1, www CNAME/1"
	for what, z := range map[string]*file.Zone{"tree": parsed, "store": stored} {
		if got := walks(t, z); got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
		if e, ok := z.Search("NS.example.org."); !ok || len(e.Type(dns.TypeA)) != 1 {
			t.Errorf("%s: Search: %v %v", what, e, ok)
		}
		if _, ok := z.Search("ent.example.org."); ok {
			t.Errorf("%s: an empty non-terminal was found", what)
		}
		if e, ok := z.ClosestEncloser("x.y.ns.example.org."); !ok || e.Name() != "ns.example.org." {
			t.Errorf("%s: closest encloser %v %v", what, e, ok)
		}
		if got := z.Glue([]dns.RR{test.NS("sub.example.org. 300 IN NS ns.sub.example.org.")}, false); len(got) != 1 {
			t.Errorf("%s: glue %v", what, got)
		}
		if z.Len() != 8 || len(z.All()) != 8 {
			t.Errorf("%s: %d names, %d", what, z.Len(), len(z.All()))
		}
		if apex, err := z.ApexIfDefined(); err != nil || len(apex) != 2 {
			t.Errorf("%s: apex %v %v", what, apex, err)
		}
		if err := z.Insert(test.A("new.example.org. 300 IN A 192.0.2.9")); err != nil {
			t.Error(err)
		}
		z.Delete(test.CNAME("www.example.org. 300 IN CNAME ns.example.org."))
		if got, result := lookup(z, "new.example.org.", dns.TypeA); result != file.Success {
			t.Errorf("%s: inserted: %s %d", what, got, result)
		}
		if got, result := lookup(z, "www.example.org.", dns.TypeA); result != file.NameError {
			t.Errorf("%s: deleted: %s %d", what, got, result)
		}
	}
}

func TestParse(t *testing.T) {
	z := parse(t, porchZone)
	if z.SOA.Ns != "ns.example.org." || len(z.NS) != 1 || z.File() != "db.example.org" || z.SOASerialIfDefined() != 7 {
		t.Errorf("%v %v %s", z.SOA, z.NS, z.File())
	}
	for _, tc := range []struct {
		text   string
		serial int64
		want   string
	}{
		{porchZone, 7, "no change in SOA serial for origin example.org. in file f, with 7 SOA serial"},
		{porchZone + "bad A x\n", -1, `failed to parse file "f" for origin example.org. with error f:14: bad.example.org. A: bad address "x"`},
		{"$TTL 5\nx A 192.0.2.1\n", -1, `file "f" has no SOA record for origin example.org.`},
		{porchZone + "@ NSEC3PARAM 1 0 0 -\n", -1, "NSEC3 zone is not supported, dropping RR: example.org. for zone: example.org. (f:14)"},
	} {
		if _, err := file.Parse(strings.NewReader(tc.text), "example.org", "f", tc.serial); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

func TestCopy(t *testing.T) {
	z := parse(t, porchZone)
	z.TransferFrom = []string{"192.0.2.1:53"}
	c, without := z.Copy(), z.CopyWithoutApex()
	if c.SOA != z.SOA || len(c.NS) != 1 || c.Len() != 0 || c.File() != z.File() || len(c.TransferFrom) != 1 {
		t.Errorf("Copy: %v", c.Apex)
	}
	if without.SOA != nil || without.Len() != 0 || without.SOASerialIfDefined() != -1 {
		t.Errorf("CopyWithoutApex: %v", without.Apex)
	}
	if _, err := without.ApexIfDefined(); err == nil {
		t.Error("an apex without SOA record")
	}
}

func TestExpired(t *testing.T) {
	z := parse(t, porchZone)
	z.Lock()
	z.Expired = true
	z.Unlock()
	if _, result := lookup(z, "ns.example.org.", dns.TypeA); result != file.ServerFailure {
		t.Errorf("an expired tree: %d", result)
	}
	z.Replace(parse(t, porchZone).Current())
	if _, result := lookup(z, "ns.example.org.", dns.TypeA); result != file.Success {
		t.Errorf("a new version: %d", result)
	}
	z.SetExpired(true)
	if _, result := lookup(z, "ns.example.org.", dns.TypeA); result != file.ServerFailure {
		t.Errorf("an expired version: %d", result)
	}
	z.Replace(z.Current())
	if _, result := lookup(z, "ns.example.org.", dns.TypeA); result != file.Success {
		t.Errorf("a version after an expired one: %d", result)
	}
}

// TestTransfer reads transfers from trees and stores.
func TestTransfer(t *testing.T) {
	parsed := parse(t, porchZone)
	stored := file.NewZone("example.org.", "")
	stored.Replace(parsed.Current())
	for what, z := range map[string]*file.Zone{"tree": parsed, "store": stored} {
		for serial, want := range map[uint32]int{0: 12, 7: 1, 6: 12, 8: 1} {
			ch, err := z.Transfer(serial)
			if err != nil {
				t.Fatal(err)
			}
			var rrs []dns.RR
			for batch := range ch {
				rrs = append(rrs, batch...)
			}
			if len(rrs) != want || rrs[0].Header().Rrtype != dns.TypeSOA || rrs[len(rrs)-1].Header().Rrtype != dns.TypeSOA {
				t.Errorf("%s, serial %d: %d records: %v", what, serial, len(rrs), rrs)
			}
		}
	}
	if _, err := file.NewZone("example.org.", "").Transfer(0); err == nil {
		t.Error("a transfer of nothing")
	}
}

// Fields of a File that are embedded are promoted.
func TestEmbedded(t *testing.T) {
	z := byHand(t)
	f := file.File{Zones: file.Zones{Z: map[string]*file.Zone{"example.org.": z}, Names: []string{"example.org."}}}
	if f.Z["example.org."] != z || f.Names[0] != "example.org." || f.Zones.Z["example.org."] != z {
		t.Errorf("%v %v", f.Z, f.Names)
	}
	for _, name := range []string{"Zones", "ZoneLookupFunc", "TransferInFunc"} {
		if field, ok := reflect.TypeOf(f).FieldByName(name); !ok || !field.Anonymous {
			t.Errorf("%s is not embedded", name)
		}
	}
}

// What Lookup says of empty non-terminals: one of the zone is a success, a name that a wildcard's stands for has no
// data.
func TestEmptyNonTerminals(t *testing.T) {
	z := parse(t, porchZone+"a.*.star TXT x\n")
	for name, want := range map[string]file.Result{"ent.example.org.": file.Success, "x.star.example.org.": file.NoData, "*.star.example.org.": file.Success, "www.star.example.org.": file.NoData} {
		r := new(dns.Msg).SetQuestion(name, dns.TypeA)
		answer, ns, _, result := z.Lookup(context.Background(), request.Request{W: &test.ResponseWriter{}, Req: r}, name)
		if result != want || len(answer) != 0 || len(ns) != 1 || ns[0].Header().Rrtype != dns.TypeSOA {
			t.Errorf("%s: %d, want %d: %v %v", name, result, want, answer, ns)
		}
	}
}
