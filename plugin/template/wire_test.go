package template

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const settledTemplates = `template IN AAAA . {
	rcode NOERROR
}
template IN TXT gone.example {
	rcode NXDOMAIN
	authority "gone.example. 60 IN SOA ns.gone.example. admin.gone.example. 1 60 60 60 60"
	ederror 15 "not here"
}
template IN MX failing.example {
	rcode SERVFAIL
}
template IN SRV failing.example {
	rcode SERVFAIL
	ederror 22
	answer "{{ .Name }} 60 IN SRV 0 0 0 ."
}
template ANY ANY other.example {
	match ^known[.]
	rcode REFUSED
	fallthrough sub.other.example
}
template IN A alias.example {
	answer "{{ .Name }} 60 IN CNAME target.alias.example."
}
template IN ANY alias.example {
	match ^(x+)[.]
	answer "{{ .Name }} 60 IN CNAME {{ index .Match 1 }}.alias.example."
	fallthrough
}
template IN NAPTR long.example {
	answer "{{ .Name }} 60 IN NAPTR 1 2 \"u\" \"E2U+sip\" \"!^.*$!sip:{{ .Type }}@{{ .Zone }}!\" ." "ns.{{ .Zone }} 5 IN NS ns.Long.example."
	additional "{{ .Name }} 60 IN HINFO a b" "{{ .Name }}.{{ .Name }}{{ .Name }} 60 IN A 192.0.2.1"
}
template IN HINFO wrong.example {
	answer "{{ .Name }} 60 IN HINFO {{ index .Match 5 }}"
}
`

// shown is what a client gets, and what comes of it.
func shown(m *dns.Msg, rcode int, err error, next bool) string {
	if m == nil {
		return fmt.Sprint(dns.RcodeToString[rcode], err, next)
	}
	m.Id = 0
	for _, rr := range m.Extra {
		if opt, ok := rr.(*dns.OPT); ok {
			opt.SetUDPSize(0)
		}
	}
	return fmt.Sprint(m, err, next)
}

// Both lanes say the same, and count the same, of templates that are settled by the question.
func TestLanes(t *testing.T) {
	var settled, unpacked int
	for _, config := range []string{settledTemplates, addresses} {
		h := serving(t, config)
		var names []string
		for _, zone := range []string{"example.", "gone.example.", "failing.example.", "other.example.", "sub.other.example.", "alias.example.", "long.example.", "wrong.example.", "example.org.", "sub.example.org.", "example.net."} {
			names = append(names, zone, "www."+zone, "KNOWN."+strings.ToUpper(zone), "xx."+zone, "ip-3-4."+zone, "fixed."+zone, `a\.b.`+zone, strings.Repeat("longlabel.", 20)+zone)
		}
		for _, name := range names {
			for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeSRV, dns.TypeNAPTR, dns.TypeHINFO, 4711} {
				for _, edns := range []bool{false, true} {
					m := new(dns.Msg).SetQuestion(name, qtype)
					if edns {
						m.SetEdns0(1232, false)
					}
					if got, want, ok := inLanes(t, &h, m); !ok {
						unpacked++
					} else if settled++; got != want {
						t.Errorf("%s %d: in the wire lane\n%s\nas a message\n%s", name, qtype, got, want)
					}
				}
			}
		}
	}
	if settled < 2500 || unpacked > 450 {
		t.Errorf("%d in the wire lane, %d unpacked", settled, unpacked)
	}
}

// A record that is rendered as OPT is the OPT record of the reply, in which its options are, and not one beside it.
func TestOPTInLanes(t *testing.T) {
	h := serving(t, "template IN TXT example {\nadditional \"{{ .Zone }} 60 IN TYPE41 \\# 8 0003000461626364\"\n}")
	m := new(dns.Msg).SetQuestion("www.example.", dns.TypeTXT).SetEdns0(1232, false)
	if got, want, ok := inLanes(t, &h, m); ok {
		t.Errorf("in the wire lane\n%s\nas a message\n%s", got, want)
	}
	rec := &lastMessage{}
	if _, err := h.ServeDNS(context.Background(), rec, m); err != nil || rec.m == nil || rec.m.IsEdns0() == nil || len(rec.m.IsEdns0().Option) != 1 {
		t.Error(rec.m, err)
	}
}

// inLanes is what h makes of m in the wire lane, and as a message. It reports false if the wire lane leaves it to the other.
func inLanes(t *testing.T, h *Handler, m *dns.Msg) (got, want string, ok bool) {
	t.Helper()
	b, err := m.Pack()
	q, w := new(wire.Query), new(wire.Reply)
	if err != nil || !q.Parse(b) {
		t.Fatal("not eligible", m, err)
	}
	h.Next = &passing{new(bool)}
	w.Reset(make([]byte, 4096))
	before := matched()
	if h.ServeWire(context.Background(), w, q) == wire.Unpack {
		if after := matched(); after != before {
			t.Errorf("%s: counted, and left to the message lane", m.Question[0].String())
		}
		return "", "", false
	}
	counted := matched() - before
	if w.Holds() {
		reply, err := w.MsgOPT(m)
		if err != nil || w.Writer() != pluginName {
			t.Fatal(err, w.Writer())
		}
		got = shown(reply, 0, nil, *h.Next.(*passing).passed)
	} else {
		got = shown(nil, w.Rcode(), w.Err(), *h.Next.(*passing).passed)
	}
	passed := false
	h.Next = test.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		passed = true
		return 0, nil
	})
	rec := &lastMessage{}
	before = matched()
	rcode, err := h.ServeDNS(context.Background(), rec, m)
	if n := matched() - before; n != counted {
		t.Errorf("%s: counted %v in the wire lane, %v as a message", m.Question[0].String(), counted, n)
	}
	if rec.m != nil && m.IsEdns0() == nil {
		rec.m.Extra = slices.DeleteFunc(rec.m.Extra, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT })
	}
	return got, shown(repacked(t, rec.m), rcode, err, passed), true
}

// matched is how many queries were counted.
func matched() (n float64) {
	all := make(chan prometheus.Metric, 10000)
	matches.Collect(all)
	close(all)
	for metric := range all {
		var m dto.Metric
		if metric.Write(&m) == nil {
			n += m.Counter.GetValue()
		}
	}
	return n
}

// lastMessage keeps the reply.
type lastMessage struct {
	test.ResponseWriter
	m *dns.Msg
}

func (l *lastMessage) WriteMsg(m *dns.Msg) error {
	l.m = m
	return nil
}

// repacked is m as a client reads it.
func repacked(t *testing.T, m *dns.Msg) *dns.Msg {
	t.Helper()
	if m == nil {
		return nil
	}
	b, err := m.Pack()
	out := new(dns.Msg)
	if err != nil || out.Unpack(b) != nil {
		t.Fatal(m, err)
	}
	return out
}

func BenchmarkServeWire(b *testing.B) {
	for _, tc := range []struct {
		name, config, question string
		qtype                  uint16
	}{
		{"no records", settledTemplates, "www.example.", dns.TypeAAAA},
		{"denial", settledTemplates, "www.gone.example.", dns.TypeTXT},
		{"fixed", addresses, "fixed.sub.example.org.", dns.TypeA},
		{"kept", addresses, "ip-2-9.example.org.", dns.TypeA},
		{"passed on", addresses, "www.sub.example.org.", dns.TypeA},
	} {
		h := serving(b, tc.config)
		h.Next = &passing{new(bool)}
		m := new(dns.Msg).SetQuestion(tc.question, tc.qtype)
		packet, _ := m.Pack()
		q, w, buf := new(wire.Query), new(wire.Reply), make([]byte, 512)
		if !q.Parse(packet) {
			b.Fatal("not eligible")
		}
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w.Reset(buf); h.ServeWire(context.Background(), w, q) != wire.Done {
					b.Fatal("not done")
				}
			}
		})
	}
}
