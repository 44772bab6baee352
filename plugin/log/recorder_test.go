package log

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// taker is a server's writer: it takes replies that lie in a lane, and cuts them.
type taker struct {
	test.ResponseWriter
	taken int
}

func (w *taker) TakeReply(reply *wire.Reply, r *dns.Msg) (bool, error) {
	w.taken++
	reply.End(wire.EndFor(r, dns.MinMsgSize))
	return true, nil
}

// A reply that is taken as it lies in a lane makes the same line as a message.
func TestTakenReplies(t *testing.T) {
	for _, tc := range []struct {
		what  string
		reply func(w *wire.Reply, q *wire.Query)
		class response.Class
		want  string
		cut   bool
		op    int
	}{
		{"answer", func(w *wire.Reply, q *wire.Query) {
			w.SetFlag(wire.FlagAA, true)
			w.Addr(wire.Answer, q.Name(), 5, netip.MustParseAddr("192.0.2.1"))
		}, response.Success, `NOERROR qr,aa,rd 64 0\.`, false, dns.OpcodeQuery},
		{"denial", func(w *wire.Reply, _ *wire.Query) { w.SetRcode(wire.NXDomain) }, response.Denial, `NXDOMAIN qr,rd 33 0\.`, false, dns.OpcodeQuery},
		{"long answer", func(w *wire.Reply, q *wire.Query) {
			for i := range 40 {
				w.Addr(wire.Answer, q.Name(), 5, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			}
		}, response.Success, `NOERROR qr,tc,rd 1273 0\.`, true, dns.OpcodeQuery},
		// A reply to anything else has neither RD nor CD.
		{"to a NOTIFY", func(w *wire.Reply, _ *wire.Query) { w.SetFlag(wire.FlagAA, true) }, response.Error, `NOERROR qr,aa 33 0\.`, false, dns.OpcodeNotify},
	} {
		next := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			adapter, err := plugin.NewWireAdapter(w, r)
			if err != nil {
				return 0, err
			}
			defer adapter.Free()
			adapter.Reply.Begin(&adapter.Query)
			tc.reply(&adapter.Reply, &adapter.Query)
			return adapter.Write()
		})
		for _, class := range []response.Class{response.All, response.Success, response.Denial, response.Error} {
			l := Logger{Next: next, Rules: []Rule{{NameScope: ".", Format: DefaultLogFormat, Class: classes(class)}}}
			line := func(w dns.ResponseWriter) string {
				out := capture(t)
				r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
				r.Id, r.Opcode, r.CheckingDisabled = 7, tc.op, tc.op != dns.OpcodeQuery
				if rc, err := l.ServeDNS(context.Background(), w, r); rc != 0 && rc != dns.RcodeNameError || err != nil {
					t.Fatal(rc, err)
				}
				return regexp.MustCompile(`[0-9.]+s\n`).ReplaceAllString(out.String(), "0.s")
			}
			w := new(taker)
			got := line(w)
			if w.taken != 1 {
				t.Fatalf("%s: taken %d times", tc.what, w.taken)
			}
			if want := line(&test.ResponseWriter{}); got != want && !tc.cut {
				t.Errorf("%s: logged %q, of a message %q", tc.what, got, want)
			}
			if logged := class == response.All || class == tc.class; logged != (got != "") || logged && !regexp.MustCompile(tc.want).MatchString(strings.ReplaceAll(got, "0.s", "0.")) {
				t.Errorf("%s, class %v: logged %q, want %q", tc.what, class, got, tc.want)
			}
		}
	}
}

// Octets that a plugin passes on, such as the reply to an update, make the line of the message that they are. Others are
// no reply.
func TestOctets(t *testing.T) {
	r := new(dns.Msg).SetUpdate("example.org.")
	reply := new(dns.Msg).SetRcode(r, dns.RcodeRefused)
	reply.Authoritative = true
	packet, err := reply.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		octets []byte
		want   string
	}{
		{packet, "[INFO] REFUSED qr,aa 29\n"},
		{packet[:20], "[INFO] - - 20\n"},
	} {
		next := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
			_, err := w.Write(tc.octets)
			return 0, err
		})
		l := Logger{Next: next, Rules: []Rule{{NameScope: ".", Format: "{rcode} {>rflags} {rsize}", Class: classes(response.All)}}}
		out := capture(t)
		l.ServeDNS(context.Background(), &test.ResponseWriter{}, r)
		if out.String() != tc.want {
			t.Errorf("logged %q, want %q", out, tc.want)
		}
	}
}

// Of several replies, as a transfer has them, the last one's flags are told, and the octets of all.
func TestSeveralTakenReplies(t *testing.T) {
	next := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		for range 3 {
			adapter, err := plugin.NewWireAdapter(w, r)
			if err != nil {
				return 0, err
			}
			adapter.Reply.Begin(&adapter.Query)
			adapter.Reply.SetFlag(wire.FlagAA, true)
			adapter.Reply.Addr(wire.Answer, adapter.Query.Name(), 5, netip.MustParseAddr("192.0.2.1"))
			adapter.Write()
			adapter.Free()
		}
		return 0, nil
	})
	l := Logger{Next: next, Rules: []Rule{{NameScope: ".", Format: "{rcode} {>rflags} {rsize}", Class: classes(response.All)}}}
	for _, w := range []dns.ResponseWriter{new(taker), &test.ResponseWriter{}} {
		out := capture(t)
		l.ServeDNS(context.Background(), w, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if want := "[INFO] NOERROR qr,aa,rd 192\n"; out.String() != want {
			t.Errorf("%T: logged %q, want %q", w, out, want)
		}
	}
}

// refusal is a resolver's error.
type refusal struct{}

func (refusal) Error() string { return "no answer" }
func (refusal) Resolves()     {}

// refuser fails with it in both lanes.
type refuser struct{ test.Handler }

func (r refuser) WireSelf() plugin.Handler { return r }
func (refuser) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return dns.RcodeServerFailure, refusal{}
}
func (refuser) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	w.Fail(wire.ServFail, refusal{})
	return wire.Done
}

// The reply that the server makes of a resolver's error has RA, and so has its line.
func TestResolversError(t *testing.T) {
	l := Logger{Next: refuser{}, Rules: []Rule{{NameScope: ".", Format: "{rcode} {>rflags} {rsize}", Class: classes(response.All)}}}
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	packet, _ := r.Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	q.Parse(packet)
	for lane, ask := range map[string]func(){
		"wire":    func() { l.ServeWire(t.Context(), &w, &q) },
		"message": func() { l.ServeDNS(t.Context(), &test.ResponseWriter{}, r) },
	} {
		out := capture(t)
		ask()
		clog.Flush()
		if want := "[INFO] SERVFAIL qr,rd,ra 33\n"; out.String() != want {
			t.Errorf("%s lane: logged %q, want %q", lane, out, want)
		}
	}
}
