package exec

import (
	"context"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin/metrics/vars"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// writerTo is the way back over TCP.
func writerTo(s *sink) *reply.Writer {
	return &reply.Writer{Sink: s, Finish: new(reply.Finisher), Client: reply.Client{Network: "tcp", Limit: dns.MaxMsgSize,
		Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, Local: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 53), Port: 53}}}
}

// Messages that are no proper queries are ignored, or answered with their header, flags and all but Z and AA, and the
// question if it could be read.
func TestReceive(t *testing.T) {
	const q = "0377777700 0001 0001"
	for _, tc := range []struct{ name, packet, want string }{ // want is "" if it is ignored, "ok" if it is a query
		{"nothing", "", ""},
		{"eleven octets", "1234 0100 0001 0000 0000 00", ""},
		{"QR is set", "1234 8100 0001 0000 0000 0000" + q, ""},
		{"query", "1234 0100 0001 0000 0000 0000" + q, "ok"},
		{"query with all flags but QR", "1234 07F0 0001 0000 0000 0000" + q, "ok"},
		{"NOTIFY", "1234 2400 0001 0000 0000 0000" + q, "ok"},
		{"NOTIFY with an answer", "1234 2400 0001 0001 0000 0000" + q + "C00C 0001 0001 00000000 0004 C0000201", "ok"},
		{"IXFR's authority", "1234 0000 0001 0000 0001 0000" + q + "C00C 0001 0001 00000000 0004 C0000201", "ok"},
		{"OPT and TSIG's place", "1234 0000 0001 0000 0000 0002" + q + "00 0029 04D0 00000000 0000 C00C 0001 0001 00000000 0004 C0000201", "ok"},
		{"STATUS with AD and CD", "1234 1130 0001 0000 0000 0000" + q, "1234 9134 0000 0000 0000 0000"},
		{"UPDATE", "1234 2FF0 0001 0000 0000 0000" + q, "1234 ABB4 0000 0000 0000 0000"},
		{"no question", "1234 0100 0000 0000 0000 0000", "1234 8101 0000 0000 0000 0000"},
		{"two questions", "1234 0000 0002 0000 0000 0000" + q + q, "1234 8001 0000 0000 0000 0000"},
		{"two answers", "1234 07F3 0001 0002 0000 0000" + q, "1234 83B1 0000 0000 0000 0000"},
		{"two authorities", "1234 0000 0001 0000 0002 0000" + q, "1234 8001 0000 0000 0000 0000"},
		{"three additional", "1234 0000 0001 0000 0000 0003" + q, "1234 8001 0000 0000 0000 0000"},
		{"cut behind the question", "1234 0100 0001 0000 0000 0001" + q + "0000", "1234 8101 0001 0000 0000 0000" + q},
		{"cut in the question", "1234 0100 0001 0000 0000 0000 0377", "1234 8101 0000 0000 0000 0000"},
		{"nothing behind the header", "1234 0100 0001 0000 0000 0000", "ok"}, // it is the chain that says SERVFAIL
	} {
		t.Run(tc.name, func(t *testing.T) {
			packet, err := hex.DecodeString(strings.ReplaceAll(tc.packet, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			served := 0
			s := serviceOf(t, &decider{message: func(_ context.Context, _ dns.ResponseWriter, r *dns.Msg) {
				served++
				if r.Id != 0x1234 || len(r.Question) == 1 != (len(packet) > 12) || len(r.Question) == 1 && r.Question[0].Name != "www." {
					t.Errorf("served %v", r)
				}
			}})
			out := new(sink)
			ServeMessage(s, writerTo(out), packet, nil)
			got := ""
			switch {
			case served == 1 && len(out.sent) == 0:
				got = "ok"
			case served == 0 && len(out.sent) == 1:
				got = hex.EncodeToString(out.sent[0])
			case served+len(out.sent) > 1:
				t.Errorf("served %d times, sent %x", served, out.sent)
			}
			if want := strings.ToLower(strings.ReplaceAll(tc.want, " ", "")); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Messages of opcodes that a block takes have one question, and any number of other records.
func TestReceiveOpcodes(t *testing.T) {
	const (
		q  = "0377777700 0006 0001"
		rr = "C00C 0001 00FF 00000000 0000" // no data of this type any more
	)
	for _, tc := range []struct{ name, packet, want string }{
		{"UPDATE", "1234 2800 0001 0000 0000 0000" + q, "ok"},
		{"UPDATE with many records", "1234 2800 0001 0003 0004 0003" + q + strings.Repeat(rr, 10), "ok"},
		{"UPDATE with QR", "1234 A800 0001 0000 0000 0000" + q, ""},
		{"UPDATE of no zone", "1234 2800 0000 0000 0000 0000", "1234 A801 0000 0000 0000 0000"},
		{"UPDATE of two zones", "1234 2800 0002 0000 0000 0000" + q + q, "1234 A801 0000 0000 0000 0000"},
		{"STATUS", "1234 1000 0001 0000 0000 0000" + q, "1234 9004 0000 0000 0000 0000"},
		{"opcode 15", "1234 7800 0001 0000 0000 0000" + q, "ok"},
		{"query", "1234 0000 0001 0000 0000 0000" + q, "ok"},
		{"query with two answers", "1234 0000 0001 0002 0000 0000" + q + rr + rr, "1234 8001 0000 0000 0000 0000"},
		{"NOTIFY with two answers", "1234 2000 0001 0002 0000 0000" + q + rr + rr, "1234 A001 0000 0000 0000 0000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			packet, err := hex.DecodeString(strings.ReplaceAll(tc.packet, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			s := serviceOf(t, &decider{})
			s.Opcodes = 1<<dns.OpcodeUpdate | 1<<15
			out := new(sink)
			got := ""
			if r, _ := Receive(s, writerTo(out), packet, false); r != nil {
				got = "ok"
			}
			for _, b := range out.sent {
				got += hex.EncodeToString(b)
			}
			if want := strings.ToLower(strings.ReplaceAll(tc.want, " ", "")); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// What is turned down is counted by its rcode.
func TestTurnedDownIsCounted(t *testing.T) {
	s := serviceOf(t, &decider{})
	counted := func(rcode string) float64 {
		return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(s.Label, vars.Dropped, "", rcode, ""))
	}
	for opcode, rcode := range map[int]string{dns.OpcodeUpdate: "NOTIMP", dns.OpcodeQuery: "FORMERR"} {
		before := counted(rcode)
		m := new(dns.Msg)
		m.Opcode = opcode
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := Receive(s, writerTo(new(sink)), b, false); r != nil {
			t.Errorf("got %v", r)
		}
		if n := counted(rcode) - before; n != 1 {
			t.Errorf("%s: counted %v", rcode, n)
		}
	}
}

// Signatures are looked at before handlers are called.
func TestReceiveVerifies(t *testing.T) {
	const key, secret = "key.example.org.", "c2VjcmV0IG9mIDMyIG9jdGV0cyBmb3IgdGVzdHMuLi4="
	m := new(dns.Msg).SetQuestion("www.", dns.TypeA)
	m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
	b, _, err := dns.TsigGenerate(m, secret, "", false)
	if err != nil {
		t.Fatal(err)
	}
	for held, want := range map[string]error{secret: nil, "YW5vdGhlciBzZWNyZXQ=": dns.ErrSig} {
		w := writerTo(new(sink))
		w.Finish.Secrets = map[string]string{key: held}
		if r, _ := Receive(serviceOf(t, &decider{}), w, append([]byte(nil), b...), false); r == nil || w.TsigStatus() != want {
			t.Errorf("got %v, status %v, want %v", r, w.TsigStatus(), want)
		}
	}
}
