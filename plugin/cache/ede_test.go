package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// edesOf is the extended errors of a reply, as text.
func edesOf(m *dns.Msg) string {
	opt := m.IsEdns0()
	if opt == nil {
		return "no OPT"
	}
	var all []string
	for _, o := range opt.Option {
		if e, ok := o.(*dns.EDNS0_EDE); ok {
			all = append(all, fmt.Sprintf("%d %s", e.InfoCode, e.ExtraText))
		} else {
			all = append(all, fmt.Sprintf("option %d", o.Option()))
		}
	}
	return strings.Join(all, ", ")
}

// Extended errors come with the fresh answer and with the kept one, in both lanes, if the client has EDNS.
func TestExtendedErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		rcode   int
		records []string
		errors  []*dns.EDNS0_EDE
		change  func(*dns.Msg)
		want    string
		kept    bool
	}{
		"a failure":          {rcode: dns.RcodeServerFailure, errors: []*dns.EDNS0_EDE{{InfoCode: 9, ExtraText: "no DNSKEY"}}, change: from(), want: "9 no DNSKEY", kept: true},
		"an answer":          {records: []string{aRecord}, errors: []*dns.EDNS0_EDE{{InfoCode: 4}}, change: from(), want: "4 ", kept: true},
		"several":            {rcode: dns.RcodeNameError, records: []string{soa900}, errors: []*dns.EDNS0_EDE{{InfoCode: 15, ExtraText: "a"}, {InfoCode: 17}}, change: from(), want: "15 a, 17 ", kept: true},
		"for one network":    {records: []string{aRecord}, errors: []*dns.EDNS0_EDE{{InfoCode: 4}}, change: from("192.0.2.0/24"), want: "4 ", kept: true},
		"what is not kept":   {rcode: dns.RcodeRefused, errors: []*dns.EDNS0_EDE{{InfoCode: 18, ExtraText: "no"}}, change: from(), want: "18 no"},
		"an extended rcode":  {rcode: dns.RcodeBadCookie, errors: []*dns.EDNS0_EDE{{InfoCode: 18, ExtraText: "no"}}, change: from(), want: "18 no"},
		"none":               {records: []string{aRecord}, change: from(), want: "no OPT", kept: true},
		"a client without":   {records: []string{aRecord}, errors: []*dns.EDNS0_EDE{{InfoCode: 4}}, want: "no OPT", kept: true},
		"a long text":        {records: []string{aRecord}, errors: []*dns.EDNS0_EDE{{InfoCode: 4, ExtraText: strings.Repeat("x", 1000)}, {InfoCode: 3}}, change: from(), want: "3 ", kept: true},
		"no room for a text": {records: []string{aRecord}, errors: []*dns.EDNS0_EDE{{InfoCode: 4, ExtraText: strings.Repeat("x", 480)}}, change: func(m *dns.Msg) { m.SetEdns0(512, false) }, want: "no OPT", kept: true},
	} {
		w := newWorld(t, nil)
		w.says(tc.rcode, tc.records...)
		inner := w.answer
		w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
			return inner(changing{rw, func(m *dns.Msg) {
				m.SetEdns0(4096, true)
				opt := m.IsEdns0()
				opt.Option = append(opt.Option, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")})
				for _, e := range tc.errors {
					opt.Option = append(opt.Option, e)
				}
			}}, r)
		})
		for i := range 2 {
			m, _ := w.ask("example.org.", dns.TypeA, tc.change)
			if got := edesOf(m); got != tc.want {
				t.Errorf("%s: reply %d: %s, want %s", name, i, got, tc.want)
			}
		}
		if (w.asked.Load() == 1) != tc.kept {
			t.Errorf("%s: asked %d times", name, w.asked.Load())
		}
		q := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		if tc.change != nil {
			tc.change(q)
		}
		if got := w.onlyWire(q); tc.kept && (tc.want != "no OPT" && edesOf(got) != tc.want || tc.want == "no OPT" && got.IsEdns0() != nil && len(got.IsEdns0().Option) > 0) {
			t.Errorf("%s: in the wire lane: %s, want %s", name, edesOf(got), tc.want)
		}
	}
}

// onlyWire is the reply of the wire lane, nil if it has none.
func (w *world) onlyWire(m *dns.Msg) *dns.Msg {
	w.t.Helper()
	p, err := m.Pack()
	if err != nil {
		w.t.Fatal(err)
	}
	var q wire.Query
	var r wire.Reply
	r.Reset(nil)
	if !q.Parse(p) || w.c.ServeWire(context.Background(), &r, &q) != wire.Done {
		return nil
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(r.Finish(&q, 1232)); err != nil {
		w.t.Fatal(err)
	}
	return reply
}

// relayed answers in the lane with what came from elsewhere.
type relayed struct {
	source
	packet []byte
}

func (s *relayed) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !w.LoadMessage(q, s.packet) {
		return wire.Unpack
	}
	return wire.Done
}

// A miss in the wire lane passes them on as well, and counts the reply with them.
func TestExtendedErrorsOfMisses(t *testing.T) {
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	m.Response, m.Rcode = true, dns.RcodeServerFailure
	m.SetEdns0(4096, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}, &dns.EDNS0_EDE{InfoCode: 22, ExtraText: "all silent"}}
	p, _ := m.Pack()
	c := New()
	c.Next = &relayed{packet: p}
	for i, want := range []string{"22 all silent", "22 all silent", "no OPT"} {
		ask := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		if i < 2 {
			ask.SetEdns0(1232, false)
		}
		p, _ := ask.Pack()
		var q wire.Query
		var r wire.Reply
		r.Reset(nil)
		if !q.Parse(p) || c.ServeWire(context.Background(), &r, &q) != wire.Done {
			t.Fatal("not answered")
		}
		plain := r.PlainLen()
		reply := new(dns.Msg)
		if err := reply.Unpack(r.Finish(&q, 1232)); err != nil || edesOf(reply) != want || plain != reply.Len() {
			t.Errorf("reply %d: %v: %s, counted as %d octets of %d", i, err, edesOf(reply), plain, reply.Len())
		}
	}
}

func FuzzEDE(f *testing.F) {
	f.Add([]byte("\x00\x0f\x00\x03\x00\x16x\x00\x08\x00\x00"))
	f.Add([]byte("\x00\x0f\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, options []byte) {
		b := edeOf(nil, options)
		if len(b) > maxEDE || string(edeOf(nil, b)) != string(b) {
			t.Fatalf("%x of %x", b, options)
		}
		e := wire.EDNS{Size: 1232, Options: b}
		rr, _, err := dns.UnpackRR(e.Append(nil), 0)
		if err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		for _, o := range rr.(*dns.OPT).Option {
			if o.Option() != dns.EDNS0EDE {
				t.Fatalf("%x: %v", b, o)
			}
		}
	})
}
