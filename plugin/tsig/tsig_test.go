package tsig

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

const secret = "bm90LWEtcmVhbC1zZWNyZXQtYnV0LWZpbmU="

// writer says what the transport found about the signature.
type writer struct {
	test.ResponseWriter
	status error
}

func (w *writer) TsigStatus() error { return w.status }

func signed(qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion("www.example.org.", qtype)
	m.SetEdns0(1232, true)
	return m.SetTsig("key.example.org.", dns.HmacSHA256, 300, 1700000000)
}

func TestServeDNS(t *testing.T) {
	unsigned := func() *dns.Msg { return new(dns.Msg).SetQuestion("www.example.org.", dns.TypeTXT) }
	update := unsigned()
	update.Opcode = dns.OpcodeUpdate
	demandTXT := demand{types: set{some: map[uint16]bool{dns.TypeTXT: true}}}
	for name, tc := range map[string]struct {
		r       *dns.Msg
		status  error
		demand  demand
		zone    string
		reached bool
		rcode   int    // of the reply, -1: none is written here
		code    uint16 // of its TSIG record
		signed  bool
	}{
		"none needed":           {r: unsigned(), reached: true, rcode: 0},
		"needed":                {r: unsigned(), demand: demandTXT, rcode: dns.RcodeRefused},
		"needed for all":        {r: unsigned(), demand: demand{types: set{all: true}}, rcode: dns.RcodeRefused},
		"for another type":      {r: new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), demand: demandTXT, reached: true},
		"for the opcode":        {r: update, demand: demand{opcodes: set{some: map[uint16]bool{dns.OpcodeUpdate: true}}}, rcode: dns.RcodeRefused},
		"for another opcode":    {r: unsigned(), demand: demand{opcodes: set{some: map[uint16]bool{dns.OpcodeUpdate: true}}}, reached: true},
		"needed in other zones": {r: unsigned(), demand: demandTXT, zone: "example.com.", reached: true},
		"good":                  {r: signed(dns.TypeTXT), demand: demandTXT, reached: true, signed: true},
		"good, in other zones":  {r: signed(dns.TypeA), zone: "example.com.", reached: true},
		"good, not needed":      {r: signed(dns.TypeA), reached: true, signed: true},
		"bad":                   {r: signed(dns.TypeA), status: dns.ErrSig, rcode: dns.RcodeNotAuth, signed: true, code: dns.RcodeBadSig},
		"unknown key":           {r: signed(dns.TypeA), status: dns.ErrSecret, rcode: dns.RcodeNotAuth, signed: true, code: dns.RcodeBadKey},
		"too old":               {r: signed(dns.TypeA), status: dns.ErrTime, rcode: dns.RcodeNotAuth, signed: true, code: dns.RcodeBadTime},
		"whatever else":         {r: signed(dns.TypeA), status: errors.New("odd"), rcode: dns.RcodeNotAuth, signed: true, code: dns.RcodeBadSig},
		"bad in other zones":    {r: signed(dns.TypeA), status: dns.ErrSig, zone: "example.com.", reached: true},
	} {
		reached := false
		zone := tc.zone
		if zone == "" {
			zone = "example.org."
		}
		server := &TSIGServer{Zones: []string{zone}, demand: tc.demand, Next: plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			reached = true
			key, known := ValidatedKeyName(ctx)
			if good := tc.signed && tc.status == nil; known != good || good != (key == "key.example.org.") {
				t.Errorf("%s: the key is %q, %v", name, key, known)
			}
			if tc.signed && r.IsTsig() != nil {
				t.Errorf("%s: the plugins below see the signature", name)
			}
			m := new(dns.Msg).SetReply(r)
			w.WriteMsg(m)
			return 0, nil
		})}
		rec := dnstest.NewRecorder(&writer{status: tc.status})
		before := len(tc.r.Extra)
		rcode, err := server.ServeDNS(context.Background(), rec, tc.r)
		if err != nil || rcode != 0 || reached != tc.reached || rec.Msg == nil || rec.Msg.Rcode != tc.rcode {
			t.Errorf("%s: %d %v, reached %v, %v", name, rcode, err, reached, rec.Msg)
			continue
		}
		if len(tc.r.Extra) != before {
			t.Errorf("%s: the query was changed", name)
		}
		sig := rec.Msg.IsTsig()
		if (sig != nil) != tc.signed {
			t.Errorf("%s: signed is %v", name, sig != nil)
			continue
		}
		if sig == nil {
			continue
		}
		if sig.Error != tc.code || sig.Hdr.Name != "key.example.org." || sig.Algorithm != dns.HmacSHA256 || rec.Msg.IsEdns0() == nil {
			t.Errorf("%s: %v", name, rec.Msg)
		}
		if tc.code == dns.RcodeBadTime && (sig.TimeSigned != 1700000000 || len(sig.OtherData) != 12) {
			t.Errorf("%s: %v", name, sig)
		}
	}
}

// A message with a TSIG record elsewhere than at its end is malformed, whether or not it is signed beside (RFC 8945 §5.1).
func TestStrayTSIG(t *testing.T) {
	stray := &dns.TSIG{Hdr: dns.RR_Header{Name: "k.", Rrtype: dns.TypeTSIG, Class: dns.ClassANY}}
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	for what, change := range map[string]func(m *dns.Msg){
		"not last":         func(m *dns.Msg) { m.Extra = []dns.RR{stray, opt} },
		"two":              func(m *dns.Msg) { m.Extra = []dns.RR{stray, stray} },
		"in the answer":    func(m *dns.Msg) { m.Answer = []dns.RR{stray} },
		"in the authority": func(m *dns.Msg) { m.Ns = []dns.RR{stray} },
	} {
		asked := false
		h := &TSIGServer{Zones: []string{"example.org."}, Next: test.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
			asked = true
			return dns.RcodeSuccess, nil
		})}
		for name, want := range map[string]bool{"www.example.org.": false, "www.example.com.": true} {
			m := new(dns.Msg).SetQuestion(name, dns.TypeA)
			change(m)
			asked = false
			w := dnstest.NewRecorder(&test.ResponseWriter{})
			h.ServeDNS(t.Context(), w, m)
			if asked != want || !want && (w.Msg == nil || w.Msg.Rcode != dns.RcodeFormatError) {
				t.Errorf("%s, %s: passed on: %v; %v", what, name, asked, w.Msg)
			}
		}
	}
}

// What the server would write for a return code is written here, signed, and the error is handed up.
func TestReturnCodeIsSigned(t *testing.T) {
	failure := errors.New("as it should")
	server := &TSIGServer{Zones: []string{"."}, Next: test.NextHandler(dns.RcodeServerFailure, failure)}
	rec := dnstest.NewRecorder(&writer{})
	rcode, err := server.ServeDNS(context.Background(), rec, signed(dns.TypeA))
	if rcode != dns.RcodeSuccess || !errors.Is(err, failure) || rec.Msg == nil || rec.Msg.Rcode != dns.RcodeServerFailure || rec.Msg.IsTsig() == nil {
		t.Errorf("%d %v %v", rcode, err, rec.Msg)
	}
}

// The messages of a transfer are signed, also those that are written as octets.
// unreachable is a resolver's error that tells clients why.
type unreachable struct{}

func (unreachable) Error() string { return "no answer" }
func (unreachable) ExtendedError() (uint16, string) {
	return dns.ExtendedErrorCodeNoReachableAuthority, ""
}
func (unreachable) Resolves() {}

// Who signs is told as much of an error as others, whose reply the server makes.
func TestSignedErrorIsExplained(t *testing.T) {
	server := &TSIGServer{Zones: []string{"."}, Next: test.NextHandler(dns.RcodeServerFailure, unreachable{})}
	r := signed(dns.TypeA)
	sig := r.Extra[len(r.Extra)-1]
	r.Extra = nil
	r.SetEdns0(1232, false)
	r.Extra = append(r.Extra, sig)
	rec := dnstest.NewRecorder(&writer{})
	server.ServeDNS(t.Context(), rec, r)
	opt := rec.Msg.IsEdns0()
	if !rec.Msg.RecursionAvailable || opt == nil || len(opt.Option) != 1 || opt.Option[0].Option() != dns.EDNS0EDE || rec.Msg.IsTsig() == nil {
		t.Errorf("got %v", rec.Msg)
	}
}

func TestTransferIsSigned(t *testing.T) {
	server := &TSIGServer{Zones: []string{"."}, Next: plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		b, err := new(dns.Msg).SetReply(r).Pack()
		if err != nil {
			return 0, err
		}
		for range 3 {
			if n, err := w.Write(b); n != len(b) || err != nil {
				t.Error(n, err)
			}
		}
		if _, err := w.Write([]byte("nothing")); err == nil {
			t.Error("what is no message was signed")
		}
		return 0, nil
	})}
	w := &transferred{}
	server.ServeDNS(context.Background(), w, signed(dns.TypeAXFR))
	if len(w.written) != 3 || fmt.Sprint(w.timersOnly) != "[false true true]" {
		t.Errorf("%d messages, timers only: %v", len(w.written), w.timersOnly)
	}
	for _, m := range w.written {
		if m.IsTsig() == nil {
			t.Error(m)
		}
	}
}

// A reply that a plugin further up keeps for itself, as dns64 does, leaves that which the client gets a whole signature.
func TestKeptReplyLeavesNoTrace(t *testing.T) {
	server := &TSIGServer{Zones: []string{"."}, Next: plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	})}
	w := &transferred{}
	server.ServeDNS(context.Background(), nonwriter.New(w), signed(dns.TypeAAAA))
	if w.timers || len(w.written) != 0 {
		t.Errorf("timers only: %v, %d messages", w.timers, len(w.written))
	}
}

// transferred keeps messages, and whether each was signed with the timers only.
type transferred struct {
	writer
	written    []*dns.Msg
	timers     bool
	timersOnly []bool
}

func (w *transferred) TsigTimersOnly(on bool) { w.timers = on }
func (w *transferred) WriteMsg(m *dns.Msg) error {
	w.written, w.timersOnly = append(w.written, m), append(w.timersOnly, w.timers)
	return nil
}

// The transport signs what the plugin prepares, so that the client can check it.
func TestSignatureCanBeChecked(t *testing.T) {
	r := signed(dns.TypeA)
	r.IsTsig().TimeSigned = uint64(time.Now().Unix())
	b, mac, err := dns.TsigGenerate(r, secret, "", false)
	if err != nil {
		t.Fatal(err)
	}
	query := new(dns.Msg)
	if err := query.Unpack(b); err != nil {
		t.Fatal(err)
	}
	server := &TSIGServer{Zones: []string{"."}, Next: plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	})}
	for what, status := range map[string]error{"good": nil, "too old": dns.ErrTime} {
		rec := dnstest.NewRecorder(&writer{status: status})
		server.ServeDNS(context.Background(), rec, query)
		rec.Msg.Rcode = dns.RcodeSuccess // the library does not check signatures of those with NOTAUTH
		reply, _, err := dns.TsigGenerate(rec.Msg, secret, mac, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := dns.TsigVerify(reply, secret, mac, false); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestServeWire(t *testing.T) {
	server := &TSIGServer{Zones: []string{"."}, demand: demand{types: set{some: map[uint16]bool{dns.TypeTXT: true}}}}
	for qtype, want := range map[uint16]wire.Outcome{dns.TypeTXT: wire.Unpack, dns.TypeA: wire.Done} {
		b, _ := new(dns.Msg).SetQuestion("www.example.org.", qtype).Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(b) {
			t.Fatal("not eligible")
		}
		if out := server.ServeWire(context.Background(), &w, &q); out != want { // without a next plugin that is a failure
			t.Errorf("%d: %v", qtype, out)
		}
	}
	b, _ := signed(dns.TypeA).Pack()
	if new(wire.Query).Parse(b) {
		t.Error("a signed query takes the wire lane")
	}
}

// A key's name is told in one form only.
func TestValidatedKeyNameIsCanonical(t *testing.T) {
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).SetTsig("KEY.Example.org", dns.HmacSHA256, 300, 1700000000)
	got := ""
	server := &TSIGServer{Zones: []string{"."}, Next: plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		got, _ = ValidatedKeyName(ctx)
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	})}
	server.ServeDNS(context.Background(), &writer{}, r)
	if got != "key.example.org." {
		t.Errorf("got %q", got)
	}
	if name, ok := ValidatedKeyName(context.Background()); ok || name != "" {
		t.Errorf("without a query: %q, %v", name, ok)
	}
}
