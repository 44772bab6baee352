package forward

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/test"

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
