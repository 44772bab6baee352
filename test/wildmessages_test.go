package test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"
)

// wildBlock has the plugins that look deep into messages, and every transport. Below the name template all is answered.
const wildBlock = `dns://.:%d tls://.:%d https://.:%d https3://.:%d quic://.:%d grpc://.:%d {
bind 127.0.0.1
tls %[8]s/cert.pem %[8]s/key.pem
nsid wild
cookie
tsig {
secret %[9]s ` + updateSecret + `
}
rewrite name suffix .example.net .example.org answer auto
header {
response set ra
}
acl example.org {
block type MX
allow
}
minimal
cache {
serve_stale 1h verify
}
dnssec
template ANY ANY template {
answer "{{ .Name }} 60 IN TXT \"{{ .Message.Id }}\""
}
dynupdate example.com {
file %[8]s/db
database %[8]s/dynamic
allow %[9]s * ANY
}
file %[8]s/db example.org
transfer {
to *
}
validator
forward . 127.0.0.1:%[7]d
}
.:%[7]d {
bind 127.0.0.1
template ANY ANY {
rcode NXDOMAIN
}
}`

// wildMessages is messages of all kinds from a seed, most of them with some octets changed, lost or added.
func wildMessages(t testing.TB, seed uint64, n int) (all [][]byte) {
	r := rand.New(rand.NewPCG(seed, 3))
	// Some are shorter than a header, or a little longer.
	all = append(all, []byte{}, []byte{0}, []byte{0, 1}, []byte{0, 1, 0}, []byte{0, 1, 0, 0}, make([]byte, 11), make([]byte, 12), make([]byte, 13))
	types := []uint16{dns.TypeA, dns.TypeTXT, dns.TypeANY, dns.TypeSOA, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeDS, dns.TypeDNSKEY, dns.TypeMX, dns.TypeAXFR, dns.TypeIXFR, 65280}
	names := []string{"www.example.org.", "zz.example.org.", "example.org.", "a.example.com.", "example.com.", "www.example.net.", "x.template.", "nowhere.test.", "."}
	for len(all) < n {
		m := new(dns.Msg).SetQuestion(names[r.IntN(len(names))], types[r.IntN(len(types))])
		m.Id = uint16(r.IntN(1 << 16))
		signed := r.IntN(4) == 0
		switch r.IntN(8) {
		case 0:
			m.SetUpdate("example.com.")
			rr, err := dns.NewRR(fmt.Sprintf("h%d.example.com. 60 IN A 192.0.2.%d", r.IntN(9), r.IntN(250)))
			if err != nil {
				t.Fatal(err)
			}
			m.Insert([]dns.RR{rr})
			signed = r.IntN(4) > 0
		case 1:
			m.SetNotify("example.com.")
		case 2:
			m.SetIxfr([]string{"example.org.", "example.com."}[r.IntN(2)], 1, "ns.example.org.", "h.example.org.")
		case 3:
			m.Opcode = r.IntN(16) // DNS Stateful Operations among them
		case 4, 5:
			m.SetEdns0([]uint16{0, 512, 1232, 65535}[r.IntN(4)], r.IntN(2) == 0)
			option := &dns.EDNS0_LOCAL{Code: []uint16{3, 8, 9, 10, 11, 12, 15, 65001}[r.IntN(8)], Data: make([]byte, r.IntN(12))}
			for i := range option.Data {
				option.Data[i] = byte(r.IntN(256))
			}
			m.IsEdns0().Option = []dns.EDNS0{option}
		}
		b, err := m.Pack()
		if signed {
			m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
			b, _, err = dns.TsigGenerate(m, updateSecret, "", false)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range []int{0, 1, 1, 2, 5}[r.IntN(5)] {
			b = mutated(b, r)
		}
		all = append(all, b)
	}
	return all
}

// mutated is b with an octet changed, some cut off, put in or doubled, or with another value in the header.
func mutated(b []byte, r *rand.Rand) []byte {
	if len(b) == 0 {
		return b
	}
	at, other := r.IntN(len(b)), r.IntN(len(b))
	switch r.IntN(5) {
	case 0:
		b[at] = byte(r.IntN(256))
	case 1:
		b = b[:at]
	case 2:
		some := make([]byte, r.IntN(8))
		for i := range some {
			some[i] = byte(r.IntN(256))
		}
		b = slices.Insert(b, at, some...)
	case 3:
		b[min(at, 11)] = []byte{0, 1, 2, 255, 0x28, 0x20}[r.IntN(6)]
	default:
		b = append(b, b[min(at, other):max(at, other)]...)
	}
	return b
}

// alive is a query that is always answered.
func alive(id uint16) *dns.Msg {
	m := question("alive.template.", dns.TypeTXT)
	m.Id = id
	return m
}

// isAlive reports whether b is the reply to alive(id).
func isAlive(b []byte, id uint16) bool {
	m := new(dns.Msg)
	return len(b) > 12 && binary.BigEndian.Uint16(b) == id && m.Unpack(b) == nil && len(m.Answer) == 1 && m.Answer[0].Header().Name == "alive.template."
}

// wildServer asks one server over each transport.
type wildServer struct {
	addrs   map[string]string
	udp     net.Conn
	streams map[string]net.Conn       // those with a length before each message
	calls   map[string]clients.Client // those with a stream for each message
	id      uint16                    // of the last alive
}

var wildSchemes = []string{"dns", "tls", "https", "https3", "quic", "grpc"}

// newWildServer starts a server.
func newWildServer(f *testing.F) *wildServer {
	dir := loopback.Folder(f)
	certificates(f, dir)
	zone := "$TTL 60\n@ IN SOA ns h 7 2 3 4 5\n@ IN NS ns\nns IN A 192.0.2.1\nwww IN CNAME ns\n* IN TXT wild\n"
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(zone), 0o600); err != nil {
		f.Fatal(err)
	}
	s := &wildServer{addrs: map[string]string{}, streams: map[string]net.Conn{}, calls: map[string]clients.Client{}}
	var args []any
	for _, scheme := range wildSchemes {
		args = append(args, loopback.Port())
		s.addrs[scheme] = fmt.Sprintf("127.0.0.1:%d", args[len(args)-1])
	}
	instance, err := CoreDNSServer(fmt.Sprintf(wildBlock, append(args, loopback.Port(), dir, updateKey)...))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup((&running{instance: instance}).end)
	if s.udp, err = net.Dial("udp", s.addrs["dns"]); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.udp.Close() })
	for _, scheme := range []string{"https", "https3", "quic", "grpc"} {
		s.calls[scheme] = clients.Connect(f, scheme, s.addrs[scheme])
	}
	return s
}

// datagram sends m and a query behind it, until that is answered: datagrams may be lost.
func (s *wildServer) datagram(t *testing.T, m []byte) {
	buf := make([]byte, 65535)
	for range 60 {
		s.id++
		b, _ := alive(s.id).Pack()
		s.udp.Write(m)
		s.udp.Write(b)
		s.udp.SetReadDeadline(time.Now().Add(time.Second))
		for {
			n, err := s.udp.Read(buf)
			if err != nil {
				break
			}
			if isAlive(buf[:n], s.id) {
				return
			}
		}
	}
	t.Errorf("udp: no answer behind %x", m)
}

// stream sends m and a query behind it on one connection, in pieces, and wants the query answered there.
func (s *wildServer) stream(t *testing.T, scheme string, m []byte) {
	conn := s.streams[scheme]
	if conn == nil {
		var err error
		if conn, err = net.DialTimeout("tcp", s.addrs[scheme], clients.AskTime); err != nil {
			t.Fatal(err)
		}
		if scheme == "tls" {
			conn = tls.Client(conn, clients.Trusting)
		}
		s.streams[scheme] = conn
	}
	s.id++
	b, _ := alive(s.id).Pack()
	b = append(clients.Frame(m), clients.Frame(b)...)
	conn.SetDeadline(time.Now().Add(clients.AskTime))
	r := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE(m)), 4))
	for len(b) > 0 {
		n := len(b)
		if r.IntN(3) == 0 {
			n = 1 + r.IntN(n)
		}
		if _, err := conn.Write(b[:n]); err != nil {
			break // what was read before is of use
		}
		b = b[n:]
	}
	for {
		got, err := clients.ReadFrame(conn)
		if err != nil {
			t.Errorf("%s: %v behind %x", scheme, err, m)
			conn.Close()
			delete(s.streams, scheme)
			return
		}
		if isAlive(got, s.id) {
			return
		}
	}
}

// call sends m in a stream of its own, and then a query, on the same connection.
func (s *wildServer) call(t *testing.T, scheme string, m []byte) {
	_, err := s.calls[scheme].Raw(m)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: no end of the stream: %v, %x", scheme, err, m)
	}
	if closed := new(quic.ApplicationError); errors.As(err, &closed) && closed.ErrorCode == protocolError {
		c, err := clients.NewQUIC(s.addrs[scheme])
		if err != nil {
			t.Fatal(err)
		}
		s.calls[scheme] = c
	}
	s.id++
	r, err := s.calls[scheme].Ask(alive(s.id))
	if err != nil {
		t.Errorf("%s: %v behind %x", scheme, err, m)
	} else if len(r.Answer) != 1 {
		t.Errorf("%s: behind %x came %v", scheme, m, r)
	}
}

// protocolError is how a server of DNS over QUIC closes a connection with a message that may not be (RFC 9250 §4.3).
const protocolError = 2

// FuzzMessages sends a message over each transport, whatever it is: the server answers what comes next, on the same connection,
// and no code of it panics. For long runs with go test -fuzz.
func FuzzMessages(f *testing.F) {
	for _, m := range wildMessages(f, 7, 400) {
		f.Add(m)
	}
	s := newWildServer(f)
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) > 65535 {
			return
		}
		panics := testutil.ToFloat64(vars.Panic)
		s.datagram(t, m)
		for _, scheme := range []string{"dns", "tls"} {
			s.stream(t, scheme, m)
		}
		for _, scheme := range []string{"https", "https3", "quic", "grpc"} {
			s.call(t, scheme, m)
		}
		if len(m) > 1 {
			s.call(t, "quic", append([]byte{0, 0}, m[2:]...)) // which has no other identifier (RFC 9250 §4.2.1)
		}
		if n := testutil.ToFloat64(vars.Panic) - panics; n != 0 {
			t.Errorf("%v panics behind %x", n, m)
		}
	})
}
