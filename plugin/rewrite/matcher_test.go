package rewrite

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func TestRequired(t *testing.T) {
	for pattern, want := range map[string]string{
		`(.*)\.cluster\.test`:    ".cluster.test",
		`^web-([0-9]+)\.a\.test`: ".a.test",
		`^(abc)+d$`:              "abc",
		`a|b`:                    "",
		`(?i)abc`:                "",
		`(abc)?d`:                "d",
		`[ab]+`:                  "",
		`x{2}yy`:                 "yy",
		`(`:                      "",
	} {
		if got := required(pattern); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

// A text that a pattern is said to need is in everything that it matches.
func FuzzRequired(f *testing.F) {
	f.Add(`(.*)\.cluster\.test`, "www.cluster.test.")
	f.Add(`^(a|bc)+d{2}`, "abcdd")
	f.Add(`(?i:x)yz*`, "XyZ")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 200 || len(text) > 200 {
			return
		}
		if re.MatchString(text) && !strings.Contains(text, required(pattern)) {
			t.Fatalf("%q matches %q without %q", pattern, text, required(pattern))
		}
	})
}

func TestTarget(t *testing.T) {
	re := regexp.MustCompile(`(a)(b)?(c)`)
	for text, want := range map[string]string{
		"x": "x", "{1}": "a", "{1}{3}.{2}": "ac.", "{0}": "ac", "{": "{", "{x}{": "{x}{", "{1": "{1", "{}": "{}", "{{1}}": "{a}", "{99999999999999999999}": "{99999999999999999999}",
	} {
		if got := string(parseTarget(text).append(nil, []byte("ac"), re.FindSubmatchIndex([]byte("ac")))); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if n := parseTarget("{2}{11}{0}").groups(); n != 11 {
		t.Errorf("%d groups", n)
	}
}

func TestRemap(t *testing.T) {
	r := &remap{from: []byte("b.test."), to: []byte("A.Test.")}
	for name, want := range map[string]string{
		"b.test.": "A.Test.", "x.b.test.": "x.A.Test.", `x\.b.test.`: "", `x\\.b.test.`: `x\\.A.Test.`, "bb.test.": "", "test.": "", "b.test.x.": "",
	} {
		got, ok := r.owner(nil, []byte(name), []byte(name))
		if ok != (want != "") || ok && string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, ok)
		}
	}
	root := &remap{from: []byte("b.test."), to: []byte(".")}
	if got, _ := root.value(nil, []byte("x.b.test."), []byte("X.B.test.")); string(got) != "X." {
		t.Errorf("below the root: %q", got)
	}
}

// A plugin below may write letters of Unicode as they are, and those have no other case in DNS: some of them are longer in
// lower case.
func TestUnicode(t *testing.T) {
	for _, e := range []edit{
		&remap{from: []byte("b.test."), to: []byte("A.test.")},
		&ownerRule{by: &matcher{kind: SuffixMatch, from: "b.test.", to: "A.test."}},
		&ownerRule{by: &matcher{kind: SubstringMatch, from: "b.test.", to: "A.test."}},
	} {
		rr := &dns.A{Hdr: dns.RR_Header{Name: "\u0130\u0130.X.B.test.", Rrtype: dns.TypeA}}
		editRecord(e, rr)
		if want := "\u0130\u0130.X.A.test."; rr.Hdr.Name != want {
			t.Errorf("%T: got %s, want %s", e, rr.Hdr.Name, want)
		}
	}
}

// Whatever the rules, the names and the reply: both lanes do the same.
func FuzzLanes(f *testing.F) {
	rules := []string{
		"rewrite name www.one.test web.two.test",
		"rewrite name suffix .one.test .two.test answer auto",
		"rewrite continue name prefix www. web. answer auto\nrewrite name substring . .. ",
		`rewrite name regex ^(.*)\.one\.test {1}.two.test answer name (.*)\.two\.test {1}.one.test value (.*)\.two {1}.one`,
		"rewrite continue ttl suffix .test 5-50\nrewrite continue rcode suffix .test NXDOMAIN NOERROR\nrewrite name www.one.test b",
		"rewrite continue edns0 local set 0xffee {qname} revert\nrewrite name www.one.test x.www.one.test",
		`rewrite name regex (.*)\.one\.test {1}.two.test answer auto value (.*)\.(.*) {2}..{1} value (.*)\.test {1}.net`,
	}
	m := chain("web.two.test.", dns.TypeA)
	m.Question = []dns.Question{{Name: "web.two.test.", Qtype: dns.TypeA, Qclass: dns.ClassINET}}
	packed, _ := m.Pack()
	for i := range rules {
		f.Add(uint8(i), "www.one.test", packed)
	}
	m.SetEdns0(1232, true)
	packed, _ = m.Pack()
	f.Add(uint8(5), "WWW.one.test", packed)
	f.Fuzz(func(t *testing.T, which uint8, name string, packed []byte) {
		b, err := wire.AppendName(nil, name)
		from := new(dns.Msg)
		if err != nil || from.Unpack(packed) != nil || from.Rcode > 15 {
			return
		}
		if opt := from.IsEdns0(); opt != nil && (opt.Version() != 0 || opt.Hdr.Ttl>>16 != 0) {
			return
		}
		var probe wire.Reply
		probe.Reset(nil)
		from.Question = []dns.Question{{Name: wire.Text(b), Qtype: dns.TypeA, Qclass: dns.ClassINET}}
		if probe.SetMsgOPT(from) != nil || len(probe.Bytes()) > 8192 {
			return
		}
		flags, opt := probe.OPT()
		same := new(dns.Msg)
		if same.Unpack(probe.End(wire.End{Limit: wire.MaxMessage, OPT: opt, OPTFlags: flags})) != nil {
			return
		}
		query := new(dns.Msg).SetQuestion(wire.Text(b), dns.TypeA)
		query.Id = 1
		if _, unpacked := agree(t, rules[int(which)%len(rules)], func(string, uint16) *dns.Msg { return same.Copy() }, query); unpacked {
			t.Fatalf("%s: unpacked", rules[int(which)%len(rules)])
		}
	})
}

// loads answers from a packed reply.
type loads struct {
	outcome
	packed *wire.Packed
}

func (l loads) WireSelf() plugin.Handler { return l }
func (l loads) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Load(l.packed, q)
	return wire.Done
}

func BenchmarkServeWire(b *testing.B) {
	m := reply(0, "web.two.test. 60 IN CNAME a.two.test.\na.two.test. 60 IN A 192.0.2.1\na.two.test. 60 IN A 192.0.2.2")
	m.Question = []dns.Question{{Name: "web.two.test.", Qtype: dns.TypeA, Qclass: dns.ClassINET}}
	var full wire.Reply
	full.Reset(nil)
	if err := full.SetMsg(m); err != nil {
		b.Fatal(err)
	}
	packed := full.Pack()
	packet, _ := new(dns.Msg).SetQuestion("web.one.test.", dns.TypeA).Pack()
	other, _ := new(dns.Msg).SetQuestion("web.two.test.", dns.TypeA).Pack()
	for name, tc := range map[string]struct {
		rules  string
		packet []byte
	}{
		"exact":           {"rewrite name web.one.test web.two.test", packet},
		"suffix":          {"rewrite name suffix .one.test .two.test answer auto", packet},
		"regex":           {`rewrite name regex (.*)\.one\.test {1}.two.test answer auto`, packet},
		"ttl":             {"rewrite ttl suffix .test 30", other},
		"none fits":       {strings.Repeat("rewrite name www.example.org www.example.net\n", 10), other},
		"none fits/regex": {strings.Repeat("rewrite name regex ^(.*)\\.example\\.org\\.$ {1}.example.net\n", 10), other},
		"edns0":           {"rewrite edns0 local set 0xffee {client_ip}", other},
	} {
		b.Run(name, func(b *testing.B) {
			rw := serving(b, tc.rules, loads{packed: &packed})
			var h plugin.WireHandler = rw
			q, w := new(wire.Query), new(wire.Reply)
			if !q.Parse(tc.packet) {
				b.Fatal("not eligible")
			}
			q.Client = netip.MustParseAddrPort("192.0.2.1:53")
			buf := make([]byte, 1024)
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(buf)
				h.ServeWire(b.Context(), w, q)
			}
		})
	}
}
