package bufsize

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// source sees the query's size in both lanes, and answers with 60 addresses.
type source struct {
	seen *uint16
	out  wire.Outcome
}

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func (s source) ServeDNS(_ context.Context, _ dns.ResponseWriter, r *dns.Msg) (int, error) {
	*s.seen = 0
	if opt := r.IsEdns0(); opt != nil {
		*s.seen = opt.UDPSize()
	}
	return dns.RcodeSuccess, nil
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	*s.seen = q.EDNS().Size
	w.Begin(q)
	for i := range 60 {
		w.Addr(wire.Answer, q.Name(), 60, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	return s.out
}

func TestBothLanes(t *testing.T) {
	for _, tc := range []struct {
		size, advertised, want int // advertised 0: no EDNS
		limit                  uint16
		octets                 int // most of the reply
	}{
		{700, 4096, 700, 0, 700},
		{700, 701, 700, 0, 700},
		{700, 700, 700, 0, 700},
		{700, 600, 600, 0, 600},
		{700, 100, 100, 0, 512},
		{700, 0, 0, 0, 512},
		{4096, 1232, 1232, 0, 1004},
		{512, 65535, 512, 0, 512},
		{512, 65535, 512, wire.MaxMessage, 1004}, // all of it
	} {
		query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		if tc.advertised > 0 {
			query.SetEdns0(uint16(tc.advertised), true)
		}
		packet, _ := query.Pack()
		name := fmt.Sprint(tc)

		var seen uint16
		h := Bufsize{Next: source{&seen, wire.Done}, Size: tc.size}
		if rc, err := h.ServeDNS(t.Context(), &test.ResponseWriter{}, query); rc != 0 || err != nil {
			t.Errorf("%s: got %d, %v", name, rc, err)
		}
		if int(seen) != tc.want {
			t.Errorf("%s, message lane: got %d", name, seen)
		}
		if opt := query.IsEdns0(); opt != nil && (int(opt.UDPSize()) != tc.want || !opt.Do()) {
			t.Errorf("%s: the server cuts to %v", name, opt)
		}

		var q wire.Query
		var w wire.Reply
		if !q.Parse(packet) {
			t.Fatal("not eligible")
		}
		q.Peer.Limit = tc.limit
		before := q.EDNS().Size
		w.Reset(make([]byte, 4096))
		if out := h.ServeWire(t.Context(), &w, &q); out != wire.Done || int(seen) != tc.want {
			t.Errorf("%s, wire lane: got %v, %d", name, out, seen)
		}
		if int(q.EDNS().Size) != tc.want {
			t.Errorf("%s: the reply is ended for %d octets", name, q.EDNS().Size)
		}
		reply := w.Finish(&q, 1232)
		cut := tc.octets < 1004
		if len(reply) > tc.octets || len(reply) < tc.octets-16 || w.Flag(wire.FlagTC) != cut || w.PlainLen() != 33+60*31 {
			t.Errorf("%s: %d octets of %d, TC %v", name, len(reply), w.PlainLen(), w.Flag(wire.FlagTC))
		}

		for _, out := range []wire.Outcome{wire.Unpack, wire.Block, wire.Park} {
			q.Parse(packet)
			if got := (Bufsize{Next: source{&seen, out}, Size: tc.size}).ServeWire(t.Context(), &w, &q); got != out {
				t.Errorf("%v became %v", out, got)
			}
			if q.EDNS().Size != before || q.Changed() {
				t.Errorf("%s: after %v the next run begins with %d octets", name, out, q.EDNS().Size)
			}
		}
	}
}

func TestReplyIsCutAtOnce(t *testing.T) {
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	query.SetEdns0(4096, false)
	packet, _ := query.Pack()
	var q wire.Query
	var w wire.Reply
	q.Parse(packet)
	w.Reset(make([]byte, 4096))
	mark := q.Mark()
	Bufsize{Next: source{new(uint16), wire.Done}, Size: 700}.ServeWire(t.Context(), &w, &q)
	q.Restore(mark)
	if n := len(w.Finish(&q, 1232)); n > 700 {
		t.Errorf("%d octets", n)
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		size  int
		err   string
	}{
		{"bufsize", 1232, ""},
		{"bufsize 512", 512, ""},
		{`bufsize "1220"`, 1220, ""},
		{"bufsize 4096", 4096, ""},
		{"bufsize 700\nbufsize 800", 700, ""},
		{"bufsize 511", 0, "plugin/bufsize: plugin/bufsize: Testfile:1 - Error during parsing: Wrong argument count or unexpected line ending after '511'"},
		{"bufsize 4097", 0, "must be a number between 512 and 4096"},
		{"bufsize abc", 0, "Wrong argument count"},
		{"bufsize 512 512", 0, "Wrong argument count"},
		{`bufsize "512 512"`, 0, "Wrong argument count"},
		{"bufsize {\nx\n}", 0, "unknown property 'x'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil {
			if got := dnsserver.GetConfig(c).Plugin[0](nil).(Bufsize).Size; got != tc.size {
				t.Errorf("%q: got %d", tc.input, got)
			}
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkServeWire(b *testing.B) {
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	query.SetEdns0(4096, false)
	packet, _ := query.Pack()
	q, w := new(wire.Query), new(wire.Reply)
	w.Reset(make([]byte, 512))
	h := Bufsize{Next: silent{}, Size: 1232}
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(packet)
		h.ServeWire(b.Context(), w, q)
	}
}

type silent struct{ source }

func (s silent) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	w.Drop()
	return wire.Done
}
