package doh

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
)

var _ exec.QueryWriter = new(Writer)

// A Writer of somebody else keeps what was written last, and has no connection.
func TestWriterKeeps(t *testing.T) {
	w := new(Writer)
	one, two := coretest.Query("one."), coretest.Query("two.")
	two.Response = true
	if err := w.WriteMsg(one); err != nil || w.Msg != one {
		t.Errorf("kept %v, %v", w.Msg, err)
	}
	b := coretest.Packed(t, two)
	if n, err := w.Write(b); err != nil || n != len(b) || w.Msg == nil || w.Msg.Question[0].Name != "two." {
		t.Errorf("kept %v, %v", w.Msg, err)
	}
	a := w.answer(nil)
	b[0]++ // it is not kept
	if m := new(dns.Msg); a.status != http.StatusOK || m.Unpack(a.body) != nil || m.Id != two.Id {
		t.Errorf("got status %d, %v", a.status, m)
	}
	if _, err := w.Write(b[:5]); err == nil || w.Msg.Question[0].Name != "two." {
		t.Errorf("takes what is no message: %v", err)
	}
	if w.Network() != "" || w.ConnectionState() != nil || w.Request() != nil || w.TsigStatus() != nil || w.Close() != nil {
		t.Error("a writer without a request knows of one")
	}
	w.Hijack()
	w.TsigTimersOnly(true)
}

// WriteFit keeps the message and its packed form, with what the query asked for, and cuts nothing.
func TestWriterFits(t *testing.T) {
	state := new(tls.ConnectionState)
	w := &Writer{
		service: coretest.Service(t, coretest.Label(t)), request: &http.Request{TLS: state},
		raddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, laddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2)},
	}
	req := coretest.Query("www.").SetEdns0(512, true)
	m := new(dns.Msg).SetReply(req)
	for range 100 {
		header := dns.RR_Header{Name: "www.", Rrtype: dns.TypeA, Class: dns.ClassINET}
		m.Answer = append(m.Answer, &dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 1)})
	}
	if err := w.WriteFit(m, req); err != nil || w.Msg != m {
		t.Fatalf("kept %v, %v", w.Msg, err)
	}
	got := new(dns.Msg)
	if got.Unpack(w.answer(nil).body) != nil || len(got.Answer) != 100 || got.Truncated || got.IsEdns0() == nil {
		t.Errorf("got %v", got)
	}
	if w.ConnectionState() != state || w.RemoteAddr() != w.raddr || w.LocalAddr() != w.laddr {
		t.Error("knows another connection")
	}
	if p := w.Peer(); p.Client.String() != "192.0.2.1:0" || p.Limit != 65535 {
		t.Errorf("the peer is %v, for replies of %d octets", p.Client, p.Limit)
	}
}

// What became of a query says the status.
func TestAnswers(t *testing.T) {
	unpackable := new(dns.Msg).SetQuestion("no name", dns.TypeA)
	unpackable.Question[0].Name = "a..b."
	for name, tc := range map[string]struct {
		w    *Writer
		err  error
		want int
	}{
		"crowded":         {new(Writer), exec.ErrCrowded, 503},
		"no query":        {new(Writer), service.ErrLong, 400},
		"nothing written": {new(Writer), nil, 500},
		"no message":      {&Writer{Msg: unpackable}, nil, 500},
		"written":         {&Writer{Msg: coretest.Query("www.")}, nil, 200},
	} {
		if a := tc.w.answer(tc.err); a.status != tc.want || len(a.body) == 0 {
			t.Errorf("%s: status %d, %q", name, a.status, a.body)
		}
	}
}
