package test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

const transferSecret = "bm90LWEtcmVhbC1zZWNyZXQtYnV0LWZpbmU="

// A stream of QUIC carries as many messages as a transfer takes, and ends behind the last one (RFC 9250 §4.2); each is signed
// if the query is. Over HTTP/3 a reply is one message.
func TestTransfersOverQUIC(t *testing.T) {
	dir, doq, doh := t.TempDir(), loopback.Port(), loopback.Port()
	certificates(t, dir)
	text := "$TTL 60\n@ IN SOA ns h 7 2 3 4 5\n@ IN NS ns\nns IN A 192.0.2.1\n"
	for name, text := range map[string]string{"small": text, "large": text + "$GENERATE 1-5000 host-$ IN A 192.0.2.1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, fmt.Sprintf("quic://.:%d https3://.:%d {\nbind 127.0.0.1\ntls %s/cert.pem %[3]s/key.pem\nroot %[3]s\nfile small small.example.org\nfile large large.example.org\ntsig {\nsecret key. %[4]s\n}\ntransfer {\nto *\n}\n}",
		doq, doh, dir, transferSecret))
	streams := clients.DialQUIC(t, fmt.Sprintf("127.0.0.1:%d", doq))
	web := clients.DialHTTP3(t, fmt.Sprintf("127.0.0.1:%d", doh), "POST")
	carriers := map[string]func([]byte) ([]byte, error){
		"quic": func(b []byte) ([]byte, error) {
			stream, err := streams.Conn.OpenStreamSync(t.Context())
			if err != nil {
				return nil, err
			}
			stream.SetDeadline(time.Now().Add(clients.AskTime))
			stream.Write(clients.Frame(b))
			stream.Close()
			return io.ReadAll(stream)
		},
		"https3": func(b []byte) ([]byte, error) {
			b, err := web.Raw(b)
			return clients.Frame(b), err
		},
	}
	for _, tc := range []struct {
		carrier, zone string
		qtype         uint16
		serial        uint32
		want          string
	}{
		{"quic", "small", dns.TypeAXFR, 0, "NOERROR 4 in 1"},
		{"quic", "large", dns.TypeAXFR, 0, "NOERROR 5004 in many"},
		{"quic", "large", dns.TypeIXFR, 6, "NOERROR 5004 in many"},
		{"quic", "large", dns.TypeIXFR, 7, "NOERROR 1 in 1"},
		{"https3", "small", dns.TypeAXFR, 0, "NOERROR 4 in 1"},
		{"https3", "small", dns.TypeIXFR, 6, "NOERROR 4 in 1"},
		{"https3", "large", dns.TypeAXFR, 0, "REFUSED 0 in 1"},
	} {
		for _, signed := range []bool{false, true} {
			q := new(dns.Msg).SetAxfr(tc.zone + ".example.org.")
			if tc.qtype == dns.TypeIXFR {
				q.SetIxfr(q.Question[0].Name, tc.serial, "a.", "b.")
			}
			q.Id = 0
			var mac string
			b, err := q.Pack()
			if signed {
				q.SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix())
				b, mac, err = dns.TsigGenerate(q, transferSecret, "", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err = carriers[tc.carrier](b)
			if err != nil {
				t.Errorf("%v: %v", tc, err)
				continue
			}
			if got, err := contents(b, signed, mac); err != nil || got != tc.want {
				t.Errorf("%v, signed %t: %s, %v", tc, signed, got, err)
			}
		}
	}
}

// contents tells what the messages of a transfer hold; they come with their lengths before them. mac is that of the query.
func contents(b []byte, signed bool, mac string) (string, error) {
	messages, records, rcode := 0, 0, 0
	for r := bytes.NewReader(b); r.Len() > 0; messages++ {
		p, err := clients.ReadFrame(r)
		if err != nil {
			return "", err
		}
		m := new(dns.Msg)
		if err := m.Unpack(p); err != nil {
			return "", err
		}
		if m.Id != 0 || len(m.Question) != 1 || signed != (m.IsTsig() != nil) {
			return "", fmt.Errorf("message %d: %v", messages, m)
		}
		if signed {
			if err := dns.TsigVerify(p, transferSecret, mac, messages > 0); err != nil {
				return "", fmt.Errorf("message %d: %w", messages, err)
			}
			mac = m.IsTsig().MAC
		}
		records, rcode = records+len(m.Answer), m.Rcode
	}
	many := fmt.Sprint(messages)
	if messages > 1 {
		many = "many"
	}
	return fmt.Sprintf("%s %d in %s", dns.RcodeToString[rcode], records, many), nil
}
