package reply

import (
	"bytes"
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// A Writer tells who asks, in the words of either lane.
func TestWriterTells(t *testing.T) {
	for transport, want := range map[string]struct {
		network string
		proto   wire.Proto
		limit   uint16
	}{"udp": {"udp", wire.UDP, 0}, "tcp": {"tcp", wire.TCP, 65535}, "doq": {"", wire.UDP, 65535}} {
		w, _ := writerFor(nil, transport)
		if p := w.Peer(); p.Client != clientAddr || p.Local != localAddr || p.Proto != want.proto || p.Limit != want.limit || p.Plain {
			t.Errorf("%s: peer %+v", transport, p)
		}
		if w.Network() != want.network || w.RemoteAddr().String() != clientAddr.String() || w.LocalAddr().String() != localAddr.String() {
			t.Errorf("%s: %q, %v, %v", transport, w.Network(), w.RemoteAddr(), w.LocalAddr())
		}
		if w.ConnectionState() != nil {
			t.Errorf("%s: a TLS state", transport)
		}
		if w.TLS = new(tls.ConnectionState); w.ConnectionState() != w.TLS {
			t.Errorf("%s: another TLS state", transport)
		}
	}
}

// Octets and messages of plugins that know what they do go out as they are.
func TestWriteAsIs(t *testing.T) {
	w, out := writerFor(&Finisher{Keepalive: 1, Pad: true}, "udp")
	octets := []byte("anything")
	if n, err := w.Write(octets); n != len(octets) || err != nil || !bytes.Equal(out.sent[0], octets) {
		t.Errorf("%d, %v, sent %q", n, err, out.sent)
	}
	m := answers(question(0, false), 100)
	if err := w.WriteMsg(m); err != nil || !bytes.Equal(out.sent[1], packed(t, m)) {
		t.Errorf("%v, %d octets", err, len(out.sent[1]))
	}
	m.Answer[0].Header().Name = strings.Repeat("a", 64) + "."
	if err := w.WriteMsg(m); err == nil || len(out.sent) != 2 {
		t.Errorf("%v, sent %d", err, len(out.sent))
	}
	out.err = errors.New("as asked")
	if err := w.WriteMsg(new(dns.Msg)); err != out.err {
		t.Errorf("got %v", err)
	}
}

// What the listener adds by itself is added in all ways: keepalive over TCP, padding where that is encrypted.
func TestExtrasInReplies(t *testing.T) {
	keepalive, padding := &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}, &dns.EDNS0_PADDING{Padding: make([]byte, 50)}
	for scheme, want := range map[string]struct{ transport, options string }{
		"dns": {"tcp", "keepalive"}, "tls": {"tcp", "keepalive padding"}, "https": {"tcp", "padding"}, "quic": {"doq", "padding"},
	} {
		for _, asked := range [][]dns.EDNS0{{keepalive, padding}, {keepalive}, {padding}, nil} {
			r := question(1232, false, asked...)
			expect := ""
			for _, o := range asked {
				name := map[uint16]string{dns.EDNS0TCPKEEPALIVE: "keepalive", dns.EDNS0PADDING: "padding"}[o.Option()]
				if strings.Contains(want.options, name) {
					expect = strings.TrimSpace(expect + " " + name)
				}
			}
			eachWay(t, finishers[scheme], want.transport, answers(r, 3), r, func(t *testing.T, way string, got *dns.Msg, length int) {
				if way == "AsSent" {
					return // it leaves them out
				}
				has := ""
				for _, o := range got.IsEdns0().Option {
					switch o := o.(type) {
					case *dns.EDNS0_TCP_KEEPALIVE:
						has += " keepalive"
						if o.Timeout != 100 {
							t.Errorf("%s, %s: %v", scheme, way, o)
						}
					case *dns.EDNS0_PADDING:
						has += " padding"
						if length != 468 {
							t.Errorf("%s, %s: %d octets", scheme, way, length)
						}
					default:
						t.Errorf("%s, %s: %v", scheme, way, o)
					}
				}
				if has = strings.TrimSpace(has); has != expect || len(got.Answer) != 3 {
					t.Errorf("%s, %s: %q, want %q", scheme, way, has, expect)
				}
			})
		}
	}
}

// Over UDP, where there is no connection to keep, nobody is told how long it may be idle.
func TestNoKeepaliveOverUDP(t *testing.T) {
	r := question(1232, false, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE})
	eachWay(t, finishers["dns"], "udp", answers(r, 1), r, func(t *testing.T, way string, got *dns.Msg, _ int) {
		if n := len(got.IsEdns0().Option); n != 0 {
			t.Errorf("%s: %v", way, got.IsEdns0())
		}
	})
}

// Options that ask whether they are read come back, unless a plugin has put in an OPT record of its own.
func TestRepeatedOptions(t *testing.T) {
	r := question(1232, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	plain := answers(r, 1)
	own := answers(r, 1).SetEdns0(1232, false)
	own.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeStaleAnswer}}
	none := answers(r, 1).SetEdns0(1232, false)
	for name, tc := range map[string]struct {
		m    *dns.Msg
		want uint16 // the one option; 0 for none
	}{"plain": {plain, dns.EDNS0NSID}, "own options": {own, dns.EDNS0EDE}, "own OPT record": {none, 0}} {
		eachWay(t, new(Finisher), "udp", tc.m, r, func(t *testing.T, way string, got *dns.Msg, _ int) {
			if way == "Wire" || name != "plain" && strings.HasSuffix(way, "Taken") {
				return // such queries do not come there, and what lies in that lane has no OPT record
			}
			o := got.IsEdns0()
			if tc.want == 0 && len(o.Option) != 0 || tc.want != 0 && (len(o.Option) != 1 || o.Option[0].Option() != tc.want) {
				t.Errorf("%s, %s: %v", name, way, o)
			}
		})
	}
	w, out := writerFor(new(Finisher), "udp")
	taken := replyOf(t, plain)
	taken.AddEDE(dns.ExtendedErrorCodeStaleAnswer, "")
	if err := w.WriteTaken(taken, r); err != nil {
		t.Fatal(err)
	}
	got := new(dns.Msg)
	if err := got.Unpack(out.sent[0]); err != nil || len(got.IsEdns0().Option) != 1 || got.IsEdns0().Option[0].Option() != dns.EDNS0EDE {
		t.Errorf("an option of the lane's: %v, %v", got, err)
	}
}

// A reply in an adapter that counts an OPT record has one, if without options: to it none is added, nor to the message
// that it becomes for writers who need that.
func TestNothingIsRepeatedBesideCountedOPT(t *testing.T) {
	r := question(1232, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	for _, counted := range []bool{true, false} {
		w, out := writerFor(new(Finisher), "udp")
		taken := replyOf(t, answers(r, 1))
		if counted {
			taken.CountOPT()
		}
		m, err := taken.MsgOPT(r)
		if err != nil || (m.IsEdns0() != nil) != counted {
			t.Fatalf("counted %v: %v, %v", counted, m, err)
		}
		if err := w.WriteTaken(taken, r); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteFit(m, r); err != nil {
			t.Fatal(err)
		}
		for i, b := range out.sent {
			got := new(dns.Msg)
			if err := got.Unpack(b); err != nil || (len(got.IsEdns0().Option) == 0) != counted {
				t.Errorf("counted %v, way %d: %v, %v", counted, i, got, err)
			}
		}
	}
}
