package test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// wildUpstream answers over each transport. What it is asked first about a name gets what a test wants, whatever that is; all
// else gets an address. Over datagrams and streams the address comes behind what the test wants.
type wildUpstream struct {
	pb.UnimplementedDnsServiceServer
	mu    sync.Mutex
	reply func(query []byte) []byte
	seen  map[string]bool // names
	sent  int             // replies of the test
}

// replies are those to a query.
func (u *wildUpstream) replies(query []byte) [][]byte {
	m := new(dns.Msg)
	if m.Unpack(query) != nil || len(m.Question) != 1 {
		return nil
	}
	right := new(dns.Msg).SetReply(m)
	right.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
	b, err := right.Pack()
	if err != nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if name := strings.ToLower(m.Question[0].Name); !strings.HasPrefix(name, "alive") && !u.seen[name] {
		u.seen[name] = true
		u.sent++
		return [][]byte{u.reply(query), b}
	}
	return [][]byte{b}
}

func (u *wildUpstream) datagrams(p net.PacketConn) {
	b := make([]byte, 65535)
	for {
		n, from, err := p.ReadFrom(b)
		if err != nil {
			return
		}
		for _, m := range u.replies(b[:n]) {
			p.WriteTo(m, from)
		}
	}
}

func (u *wildUpstream) streams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go u.stream(c)
	}
}

func (u *wildUpstream) stream(c io.ReadWriteCloser) {
	defer c.Close()
	for {
		query, err := clients.ReadFrame(c)
		if err != nil {
			return
		}
		for _, m := range u.replies(query) {
			c.Write(clients.Frame(m))
		}
	}
}

func (u *wildUpstream) quic(l *quic.Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			for {
				s, err := c.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go u.one(s)
			}
		}()
	}
}

// one answers the query of a stream.
func (u *wildUpstream) one(s io.ReadWriteCloser) {
	defer s.Close()
	query, err := clients.ReadFrame(s)
	if err != nil {
		return
	}
	if all := u.replies(query); len(all) > 0 {
		s.Write(clients.Frame(all[0]))
	}
}

// ServeHTTP implements http.Handler.
func (u *wildUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodGet {
		query, _ = base64.RawURLEncoding.DecodeString(r.URL.Query().Get("dns"))
	}
	w.Header().Set("Content-Type", "application/dns-message")
	if all := u.replies(query); len(all) > 0 {
		w.Write(all[0])
	}
}

// Query implements pb.DnsServiceServer.
func (u *wildUpstream) Query(_ context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	if all := u.replies(in.Msg); len(all) > 0 {
		return &pb.DnsPacket{Msg: all[0]}, nil
	}
	return &pb.DnsPacket{}, nil
}

// wildWays are the zones of newWildForwarder, each forwarded in another way. Names in them are of the same length.
var wildWays = []string{"udp.", "tcp.", "tls.", "doh.", "doq.", "rpc."}

// newWildForwarder starts an upstream, and a server that asks it. It returns the server's address.
func newWildForwarder(f *testing.F) (*wildUpstream, string) {
	dir := loopback.Folder(f)
	certificates(f, dir)
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		f.Fatal(err)
	}
	u := &wildUpstream{seen: map[string]bool{}}
	p, l, err := loopback.Listen()
	if err != nil {
		f.Fatal(err)
	}
	go u.datagrams(p)
	go u.streams(l)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	lt, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		f.Fatal(err)
	}
	go u.streams(lt)
	web := httptest.NewUnstartedServer(u)
	web.TLS, web.EnableHTTP2 = conf.Clone(), true
	web.StartTLS()
	doq := conf.Clone()
	doq.NextProtos = []string{"doq"}
	lq, err := quic.ListenAddr("127.0.0.1:0", doq, nil)
	if err != nil {
		f.Fatal(err)
	}
	go u.quic(lq)
	lg, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(conf.Clone())))
	pb.RegisterDnsServiceServer(g, u)
	go g.Serve(lg)

	var block strings.Builder
	block.WriteString(".:0 {\nbind 127.0.0.1\nrewrite name suffix .alias. .udp. answer auto\nminimal\nloadbalance\ndns64\ncache\n")
	for _, way := range [][4]string{
		{"forward", "udp.", p.LocalAddr().String()}, {"forward", "tcp.", l.Addr().String(), "force_tcp\n"}, {"forward", "tls.", "tls://" + lt.Addr().String()},
		{"forward", "doh.", web.URL}, {"forward", "doq.", "quic://" + lq.Addr().String()}, {"grpc", "rpc.", lg.Addr().String()},
	} {
		fmt.Fprintf(&block, "%s %s %s {\ntls %s/ca.pem\n%s}\n", way[0], way[1], way[2], dir, way[3])
	}
	i, _, tcp, err := CoreDNSServerAndPorts(block.String() + "}")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		(&running{instance: i}).end()
		g.Stop()
		lq.Close()
		web.Close()
		for _, c := range []io.Closer{p, l, lt} {
			c.Close()
		}
	})
	return u, loopback.To(tcp)
}

// wildReply is a reply to a query, made of data: a first octet that tells how far it fits the query, and either a header without
// its identifier and what follows the question, or all of a message.
func wildReply(query, data []byte) []byte {
	const header = wire.HeaderLen - 2
	if len(data) == 0 {
		return nil
	}
	kind, data := data[0]%4, slices.Clone(data[1:])
	if kind == 3 || len(data) < header {
		copy(data, query[:2])
		return data
	}
	if kind != 2 {
		data[0] |= 0x80 // it is a reply
		copy(data[2:4], []byte{0, 1})
	}
	end := wire.HeaderLen
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	return slices.Concat(query[:2], data[:header], query[wire.HeaderLen:end+5], data[header:])
}

// wildReplies is data of replies of all kinds from a seed, most of them damaged.
func wildReplies(t testing.TB, seed uint64, n int) (all [][]byte) {
	r := rand.New(rand.NewPCG(seed, 5))
	all = append(all, nil, []byte{0}, []byte{3}, []byte{3, 0, 0, 0}, make([]byte, 11))
	for len(all) < n {
		m := new(dns.Msg).SetReply(question("n00000.udp.", []uint16{dns.TypeA, dns.TypeAAAA}[r.IntN(2)]))
		oddRecords(m, m.Question[0], r)
		oddHeader(m, new(dns.Msg).SetEdns0(1232, r.IntN(2) == 0).IsEdns0(), r)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		for range []int{0, 1, 1, 2, 5}[r.IntN(5)] {
			b = mutated(b, r)
		}
		kind := []byte{0, 0, 0, 1, 2, 3}[r.IntN(6)]
		if end := wire.HeaderLen + len("n00000.udp.") + 1 + 4; kind != 3 && len(b) > end {
			b = append(b[2:wire.HeaderLen:wire.HeaderLen], b[end:]...)
		}
		all = append(all, append([]byte{kind}, b...))
	}
	return all
}

// FuzzReplies has an upstream send a reply over each transport, whatever it is: the client gets one that can be read, to what it asked,
// and so does who asks next. For long runs with go test -fuzz.
func FuzzReplies(f *testing.F) {
	for _, b := range wildReplies(f, 11, 300) {
		f.Add(b)
	}
	u, addr := newWildForwarder(f)
	conn, err := dns.Dial("tcp", addr)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { conn.Close() })
	n := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 60000 {
			return
		}
		ask := func(m *dns.Msg) *dns.Msg {
			conn.SetDeadline(time.Now().Add(clients.AskTime))
			if err := conn.WriteMsg(m); err != nil {
				t.Fatal(err)
			}
			r, err := conn.ReadMsg()
			if err != nil || r.Id != m.Id || !r.Response || len(r.Question) != 1 || r.Question[0] != m.Question[0] {
				t.Fatalf("%v to %v behind %x: %v", err, m.Question, data, r)
			}
			return r
		}
		panics := testutil.ToFloat64(vars.Panic)
		u.mu.Lock()
		u.reply, u.sent = func(query []byte) []byte { return wildReply(query, data) }, 0
		u.mu.Unlock()
		n++
		for _, way := range wildWays {
			m := question(fmt.Sprintf("n%05d.%s", n%100000, way), []uint16{dns.TypeA, dns.TypeAAAA}[n%2])
			if n%3 > 0 {
				m.SetEdns0(1232, n%3 > 1)
			}
			ask(m)
			ask(m) // it may be kept
			if r := ask(question("alive."+way, dns.TypeA)); len(r.Answer) != 1 {
				t.Errorf("%s: behind %x came %v", way, data, r)
			}
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.sent != len(wildWays) && n < 100000 {
			t.Errorf("the upstream was asked %d times", u.sent)
		}
		if n := testutil.ToFloat64(vars.Panic) - panics; n != 0 {
			t.Errorf("%v panics behind %x", n, data)
		}
	})
}
