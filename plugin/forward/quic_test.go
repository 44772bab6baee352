package forward

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/plugin/test"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// quicUpstream answers over QUIC with one A record. ca is the file of who signed its certificate, which is for 127.0.0.1.
func quicUpstream(t *testing.T, answer string) (addr, ca string) {
	t.Helper()
	dir, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"doq"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				for {
					s, err := conn.AcceptStream(context.Background())
					if err != nil {
						return
					}
					b, _ := io.ReadAll(s)
					r := new(dns.Msg)
					if len(b) > 2 && r.Unpack(b[2:]) == nil {
						m := new(dns.Msg).SetReply(r)
						rr, _ := dns.NewRR(r.Question[0].Name + " 60 IN A " + answer)
						m.Answer = []dns.RR{rr}
						reply, _ := m.Pack()
						s.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
					}
					s.Close()
				}
			}()
		}
	}()
	return l.Addr().String(), filepath.Join(dir, "ca.pem")
}

func TestOverQUIC(t *testing.T) {
	addr, ca := quicUpstream(t, "192.0.2.1")
	f := configured(t, "forward . quic://"+addr+" {\ntls "+ca+"\n}")
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		for range 3 {
			if got := ask(f, "www.example.org."); got != "192.0.2.1" {
				t.Error(got)
			}
		}
	})
	f = configured(t, "forward . quic://"+addr+" {\ntls "+ca+"\ntls_servername dns.example.net\nmax_fails 0\n}")
	if got := answered(f, "www.example.org."); got == "192.0.2.1" {
		t.Error("a certificate for another name is taken")
	}
}

// Taps learn what the attempt went over: addresses do not tell DNS over QUIC from plain UDP.
func TestTapOverQUIC(t *testing.T) {
	addr, ca := quicUpstream(t, "192.0.2.1")
	f := configured(t, "forward . quic://"+addr+" {\ntls "+ca+"\n}")
	var l taps
	f.taps = []dnstapped{{&l, true}}
	if got := answered(f, "www.example.org."); got != "192.0.2.1" || len(l) != 2 {
		t.Fatal(got, l)
	}
	for _, m := range l {
		if m.GetSocketProtocol() != msg.ProtocolDOQ || m.GetSocketFamily() != tap.SocketFamily_INET || len(m.ResponseAddress) != 4 || m.QueryAddress != nil ||
			m.GetQueryPort() == 0 || m.GetResponsePort() == 0 {
			t.Error(m)
		}
	}
}

// A DoQ upstream is not asked for a zone: the client gets NOTIMP. Others are asked.
func TestNoTransferOverQUIC(t *testing.T) {
	addr, ca := quicUpstream(t, "192.0.2.1")
	plain := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) { w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeRefused)) })
	for _, tc := range []struct {
		to    string
		qtype uint16
		rcode int
	}{
		{"quic://" + addr, dns.TypeAXFR, dns.RcodeNotImplemented},
		{"quic://" + addr, dns.TypeIXFR, dns.RcodeNotImplemented},
		{"quic://" + addr, dns.TypeA, dns.RcodeSuccess},
		{plain, dns.TypeAXFR, dns.RcodeRefused},
		{plain, dns.TypeIXFR, dns.RcodeRefused},
	} {
		f := configured(t, "forward . "+tc.to+" {\ntls "+ca+"\nhedge\n}")
		r := new(dns.Msg).SetQuestion("example.org.", tc.qtype).SetEdns0(1232, false)
		m, rcode, err := serve(f, &test.ResponseWriter{}, r)
		if m == nil || m.Rcode != tc.rcode || m.Id != r.Id || len(m.Question) != 1 || err != nil {
			t.Errorf("type %d to %s: got %v, %d, %v", tc.qtype, tc.to, m, rcode, err)
		}
	}
}
