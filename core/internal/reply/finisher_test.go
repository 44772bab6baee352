package reply

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// sink keeps what is sent.
type sink struct {
	sent [][]byte
	err  error
}

func (s *sink) Send(b []byte) error {
	s.sent = append(s.sent, slices.Clone(b))
	return s.err
}
func (s *sink) Close() error { return nil }
func (s *sink) Hijack()      {}

var clientAddr, localAddr = netip.MustParseAddrPort("192.0.2.1:4711"), netip.MustParseAddrPort("192.0.2.53:53")

// clientsOf are those who ask, by the transport.
var clientsOf = map[string]Client{
	"udp": {Network: "udp", Remote: net.UDPAddrFromAddrPort(clientAddr), Local: net.UDPAddrFromAddrPort(localAddr)},
	"tcp": {Network: "tcp", Remote: net.TCPAddrFromAddrPort(clientAddr), Local: net.TCPAddrFromAddrPort(localAddr), Limit: dns.MaxMsgSize},
	"doq": {Remote: net.UDPAddrFromAddrPort(clientAddr), Local: net.UDPAddrFromAddrPort(localAddr), Limit: dns.MaxMsgSize},
}

// writerFor is the writer of a query that came over the transport.
func writerFor(f *Finisher, transport string) (*Writer, *sink) {
	out := new(sink)
	return &Writer{Sink: out, Client: clientsOf[transport], Finish: f}, out
}

// question asks for the A records of www.example.org, with EDNS of that size if it is not 0.
func question(size uint16, do bool, options ...dns.EDNS0) *dns.Msg {
	m := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
	if size > 0 {
		m.SetEdns0(size, do)
		m.IsEdns0().Option = options
	}
	return m
}

// answers is a reply with n addresses.
func answers(r *dns.Msg, n int) *dns.Msg {
	m := new(dns.Msg).SetReply(r)
	for i := range n {
		m.Answer = append(m.Answer, addressOf(r.Question[0].Name, i))
	}
	return m
}

func addressOf(name string, i int) dns.RR {
	header := dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
	return &dns.A{Hdr: header, A: net.IPv4(10, 0, byte(i>>8), byte(i)).To4()}
}

// queryOf is r as the wire lane has it, from the client of w.
func queryOf(t testing.TB, r *dns.Msg, w *Writer) *wire.Query {
	t.Helper()
	q := new(wire.Query)
	if !q.Parse(packed(t, r)) {
		t.Fatal("not eligible")
	}
	q.Peer = w.Peer()
	q.Arrival = time.Now()
	return q
}

// replyOf is m as the wire lane has it.
func replyOf(t testing.TB, m *dns.Msg) *wire.Reply {
	t.Helper()
	w := new(wire.Reply)
	w.Reset(nil)
	if err := w.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	return w
}

// ways are those in which m becomes the reply to r.
var ways = map[string]func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte{
	"Wire": func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte {
		w, _ := writerFor(f, transport)
		q := queryOf(t, r, w)
		f.Check(q)
		return f.Wire(replyOf(t, m), q)
	},
	"Taken": func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte {
		c := clientsOf[transport]
		return f.Taken(replyOf(t, m), r, &c)
	},
	"WriteTaken": func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte {
		w, out := writerFor(f, transport)
		if err := w.WriteTaken(replyOf(t, m), r); err != nil || len(out.sent) != 1 {
			t.Fatalf("%v, sent %x", err, out.sent)
		}
		return out.sent[0]
	},
	"Msg": func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte {
		c, out := clientsOf[transport], new(sink)
		if done, err := f.Msg(m.Copy(), r, &c, out); !done || err != nil || len(out.sent) != 1 {
			t.Fatalf("done %t, %v, sent %x", done, err, out.sent)
		}
		return out.sent[0]
	},
	"WriteFit": func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte {
		w, out := writerFor(f, transport)
		if err := w.WriteFit(m.Copy(), r); err != nil || len(out.sent) != 1 {
			t.Fatalf("%v, sent %x", err, out.sent)
		}
		return out.sent[0]
	},
	"AsSent": func(t *testing.T, f *Finisher, transport string, m, r *dns.Msg) []byte {
		w, _ := writerFor(f, transport)
		return packed(t, f.AsSent(m, r, w))
	},
}

// shape is what would differ if somebody changed m.
func shape(m *dns.Msg) string {
	return fmt.Sprint(m.MsgHdr, m.Compress, len(m.Answer), len(m.Ns), len(m.Extra), m.IsEdns0())
}

// eachWay calls check with what m becomes as the reply to r, each way.
func eachWay(t *testing.T, f *Finisher, transport string, m, r *dns.Msg, check func(t *testing.T, way string, got *dns.Msg, length int)) {
	t.Helper()
	for way, finish := range ways {
		before := shape(m)
		b := finish(t, f, transport, m, r)
		got := new(dns.Msg)
		if err := got.Unpack(b); err != nil {
			t.Errorf("%s: %x: %v", way, b, err)
			continue
		}
		if shape(m) != before {
			t.Errorf("%s: the message was changed", way)
		}
		if got.Id != r.Id || !got.Response || got.RecursionDesired != r.RecursionDesired || len(got.Question) != 1 || got.Question[0] != r.Question[0] {
			t.Errorf("%s: no reply to %v: %v", way, r, got)
		}
		check(t, way, got, len(b))
	}
}

// A reply is as long as its client takes, and TC says that something is missing.
func TestSize(t *testing.T) {
	for _, tc := range []struct {
		transport string
		size      uint16 // of EDNS, 0 for none
		limit     int    // of the reply
		answers   int
		tc        bool
	}{
		{"udp", 0, 512, 29, false}, // 33 + 29*16 = 497
		{"udp", 0, 512, 30, true},
		{"udp", 300, 512, 29, false},
		{"udp", 300, 512, 100, true},
		{"udp", 512, 512, 29, false},
		{"udp", 1232, 1232, 73, false}, // 33 + 73*16 + 11 = 1212
		{"udp", 1232, 1232, 75, true},
		{"udp", 4096, 4096, 250, false}, // what the client takes counts, not what we do
		{"udp", 4096, 4096, 300, true},
		{"udp", 65535, 65507, 4091, false}, // 33 + 4091*16 + 11 = 65500
		{"udp", 65535, 65507, 4093, true},  // 65532, for which no datagram has room
		{"tcp", 0, 65535, 4000, false},
		{"tcp", 512, 65535, 4000, false},
		{"tcp", 0, 65535, 5000, true}, // what it lacks is told, though there is no other way to get it
		{"doq", 0, 65535, 4000, false},
		{"doq", 1232, 65535, 4000, false},
	} {
		t.Run(fmt.Sprintf("%s, size %d, %d answers", tc.transport, tc.size, tc.answers), func(t *testing.T) {
			r := question(tc.size, false)
			eachWay(t, new(Finisher), tc.transport, answers(r, tc.answers), r, func(t *testing.T, way string, got *dns.Msg, length int) {
				if way == "AsSent" && (tc.transport == "doq" || tc.size > wire.MaxUDP) {
					return // it is the library's way: it knows no such client, and no such bound
				}
				all := len(got.Answer) == tc.answers
				if got.Truncated != tc.tc || length > tc.limit || all != (length+16*(tc.answers-len(got.Answer)) <= tc.limit) {
					t.Errorf("%s: %d octets, %d answers, TC %t", way, length, len(got.Answer), got.Truncated)
				}
				if !all && length+16 <= tc.limit {
					t.Errorf("%s: cut to %d octets though there is room", way, length)
				}
			})
		})
	}
}

// TC is for what the client needs: the glue of a referral, but no other additional records.
func TestTruncationOfAdditional(t *testing.T) {
	ns := func(name string) dns.RR {
		return &dns.NS{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: 60}, Ns: name}
	}
	r := question(0, false)
	for _, tc := range []struct {
		name       string
		of         string // the additional records
		referral   bool
		tc, served bool
	}{
		{"glue", "ns.example.org.", true, true, false},
		{"an address that is no glue", "ns.example.net.", true, false, false},
		{"beside an answer", "ns.example.org.", false, false, false},
	} {
		m := new(dns.Msg).SetReply(r)
		if tc.referral {
			m.Ns = []dns.RR{ns(tc.of)}
		} else {
			m.Authoritative = true
			m.Answer = []dns.RR{addressOf(r.Question[0].Name, 1)}
		}
		for i := range 50 {
			m.Extra = append(m.Extra, addressOf(tc.of, i))
		}
		for transport, want := range map[string]bool{"udp": tc.tc, "tcp": false} {
			eachWay(t, new(Finisher), transport, m, r, func(t *testing.T, way string, got *dns.Msg, length int) {
				if got.Truncated != want || transport == "udp" && length > 512 || transport == "tcp" && len(got.Extra) != 50 {
					t.Errorf("%s, %s, %s: %d octets, %d additional, TC %t", tc.name, transport, way, length, len(got.Extra), got.Truncated)
				}
			})
		}
	}
}

// Who sends an OPT record gets one, with DO and what is reserved as he sent it, our own size, and what plugins put in.
func TestOPT(t *testing.T) {
	ede := &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeStaleAnswer, ExtraText: "stale"}
	for _, size := range []uint16{0, 100, 512, 1000, 1232, 4096} {
		for _, do := range []bool{false, true} {
			for _, z := range []uint16{0, 0x4500} {
				for _, own := range []bool{false, true} { // the plugin has its own OPT record
					r := question(size, do)
					if size > 0 {
						r.IsEdns0().Hdr.Ttl |= uint32(z)
					}
					m := answers(r, 1)
					if own {
						m.SetEdns0(999, false)
						m.IsEdns0().Option = []dns.EDNS0{ede}
					}
					eachWay(t, new(Finisher), "udp", m, r, func(t *testing.T, way string, got *dns.Msg, _ int) {
						o := got.IsEdns0()
						if (o != nil) != (size > 0) {
							t.Errorf("%s, size %d: OPT %v", way, size, o)
						}
						if o == nil {
							return
						}
						if want := min(1232, max(512, size)); o.UDPSize() != want || o.Do() != do || o.Version() != 0 || o.Hdr.Ttl&0x7f00 != uint32(z) {
							t.Errorf("%s: size %d, want %d; DO %t, want %t; %08x", way, o.UDPSize(), want, o.Do(), do, o.Hdr.Ttl)
						}
						if own && way != "Wire" && way != "Taken" && way != "WriteTaken" && (len(o.Option) != 1 || o.Option[0].String() != ede.String()) {
							t.Errorf("%s: options %v", way, o.Option)
						}
					})
				}
			}
		}
	}
}

func TestOPTForErrorReplies(t *testing.T) {
	if o := OPT(question(0, false)); o != nil {
		t.Errorf("got %v", o)
	}
	r := question(4096, true)
	r.IsEdns0().Hdr.Ttl |= 0x01000500 // of BADVERS' high octet nothing is left
	if o := OPT(r); o.UDPSize() != 1232 || !o.Do() || o.Hdr.Ttl != 0x8500 || len(o.Option) != 0 {
		t.Errorf("got %v, %08x", o, o.Hdr.Ttl)
	}
}

// What only the library can pack is left to it: nothing is done.
func TestRareKinds(t *testing.T) {
	r := question(1232, false)
	for name, change := range map[string]func(*dns.Msg){
		"extended rcode": func(m *dns.Msg) { m.Rcode = dns.RcodeBadCookie },
		"signed":         func(m *dns.Msg) { m.SetTsig("key.", dns.HmacSHA256, 300, 0) },
		"no question":    func(m *dns.Msg) { m.Question = nil },
		"two questions":  func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
	} {
		m, out, c := answers(r, 1), new(sink), clientsOf["udp"]
		change(m)
		before := m.String()
		if done, err := new(Finisher).Msg(m, r, &c, out); done || err != nil || len(out.sent) != 0 || m.String() != before {
			t.Errorf("%s: done %t, %v, sent %x", name, done, err, out.sent)
		}
		w, out := writerFor(new(Finisher), "udp")
		if err := w.WriteFit(m, r); err != nil || len(out.sent) != 1 {
			t.Errorf("%s: %v, sent %x", name, err, out.sent)
			continue
		}
		got := new(dns.Msg)
		if err := got.Unpack(out.sent[0]); err != nil || got.IsEdns0() == nil || got.Rcode != m.Rcode || len(got.Question) != len(m.Question) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Of a network only those are told who have named one, whatever packs the reply.
func TestNetworkIsForThoseWhoAsk(t *testing.T) {
	network := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, SourceScope: 24, Address: net.IPv4(192, 0, 2, 0).To4()}
	for _, rcode := range []int{dns.RcodeSuccess, dns.RcodeBadCookie} {
		for _, names := range []bool{false, true} {
			r := question(1232, false)
			if names {
				r.IsEdns0().Option = []dns.EDNS0{network}
			}
			m := answers(r, 1)
			m.Rcode = rcode
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{network}
			w, out := writerFor(new(Finisher), "udp")
			got := new(dns.Msg)
			if err := w.WriteFit(m, r); err != nil || got.Unpack(out.sent[0]) != nil {
				t.Fatal(err)
			}
			if n := len(got.IsEdns0().Option); (n == 1) != names || got.Rcode != rcode {
				t.Errorf("rcode %d, named %v: %v", rcode, names, got.IsEdns0())
			}
		}
	}
}

// Who asked without EDNS cannot be told an extended rcode; its lower half, which is 0 of BADVERS, would tell something else.
func TestExtendedRcodeWithoutEDNS(t *testing.T) {
	r := question(0, false)
	m := answers(r, 0)
	m.Rcode = dns.RcodeBadCookie // 23
	w, out := writerFor(new(Finisher), "udp")
	if err := w.WriteFit(m, r); err != nil {
		t.Fatal(err)
	}
	if got := out.sent[0][3] & 0xF; got != dns.RcodeServerFailure {
		t.Errorf("rcode %d", got)
	}
}

// Who writes a message learns of TC, as those that log it do, and of errors.
func TestMsgTellsOfTruncation(t *testing.T) {
	r, c := question(0, false), clientsOf["udp"]
	m := answers(r, 100)
	if done, err := new(Finisher).Msg(m, r, &c, new(sink)); !done || err != nil || !m.Truncated || len(m.Answer) != 100 {
		t.Errorf("done %t, %v, TC %t, %d answers", done, err, m.Truncated, len(m.Answer))
	}
	broken := errors.New("as asked")
	if done, err := new(Finisher).Msg(answers(r, 1), r, &c, &sink{err: broken}); !done || err != broken {
		t.Errorf("done %t, %v", done, err)
	}
	bad := answers(r, 1)
	bad.Answer[0].Header().Name = strings.Repeat("a", 64) + "."
	out := new(sink)
	if done, err := new(Finisher).Msg(bad, r, &c, out); !done || err == nil || len(out.sent) != 0 {
		t.Errorf("done %t, %v, sent %x", done, err, out.sent)
	}
}

// On listeners where replies may be of any size, writers of others are not told to cut; and never what is signed.
func TestFitMsgCuts(t *testing.T) {
	r := question(0, false)
	w, _ := writerFor(nil, "udp")
	for _, tc := range []struct {
		name   string
		f      *Finisher
		signed bool
		want   bool
	}{
		{"usual", new(Finisher), false, true},
		{"none", nil, false, true},
		{"any size", &Finisher{AnySize: true}, false, false},
		{"signed", new(Finisher), true, false},
	} {
		m := answers(r, 100)
		if tc.signed {
			m.SetTsig("key.", dns.HmacSHA256, 300, 0)
		}
		tc.f.FitMsg(m, r, w, netip.Addr{})
		if m.Truncated != tc.want || (len(m.Answer) < 100) != tc.want {
			t.Errorf("%s: TC %t, %d answers", tc.name, m.Truncated, len(m.Answer))
		}
	}
}

// A copy as it is sent shares no OPT record with the message.
func TestAsSentLeavesTheMessage(t *testing.T) {
	f := new(Finisher)
	r := question(512, true)
	m := answers(r, 100)
	m.SetEdns0(4096, false)
	before := m.String()
	w, _ := writerFor(f, "udp")
	sent := f.AsSent(m, r, w)
	if m.String() != before {
		t.Error("the message was changed")
	}
	if o := sent.IsEdns0(); !sent.Truncated || len(sent.Answer) >= 100 || o == nil || !o.Do() || o.UDPSize() != 512 {
		t.Errorf("TC %t, %d answers, OPT %v", sent.Truncated, len(sent.Answer), o)
	}
}

// One Finisher ends replies of all, at one time.
func TestManyEndReplies(t *testing.T) {
	f := &Finisher{Keepalive: 100, Pad: true}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			w, out := writerFor(f, "tcp")
			for n := range 200 {
				r := question(1232, false, &dns.EDNS0_PADDING{})
				if err := w.WriteFit(answers(r, (i*n)%40), r); err != nil {
					t.Error(err)
				}
				got := new(dns.Msg)
				if err := got.Unpack(out.sent[n]); err != nil || len(got.Answer) != (i*n)%40 || len(out.sent[n])%468 != 0 {
					t.Errorf("%d octets: %v, %v", len(out.sent[n]), got, err)
				}
			}
		})
	}
	all.Wait()
}
