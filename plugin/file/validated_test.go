package file_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Signed zones, signed by ldns-signzone: our answers are those of other servers, proofs and all, and a validating resolver
// believes them; and it does not believe what was spoilt.

// signed is generated zones, signed with NSEC or NSEC3 records and a ZONEMD record, and their keys.
func signed(t testing.TB, n int, nsec3 bool) (zones []*zonetest.Zone, files map[string]string, keys []string) {
	t.Helper()
	keygen, signzone := zonetest.Program(t, "ldns-keygen", "ldnsutils"), zonetest.Program(t, "ldns-signzone", "ldnsutils")
	zones, files = generated(t, n)
	for _, z := range zones {
		dir := filepath.Dir(files[z.Origin])
		tool := func(path string, args ...string) string {
			cmd := exec.Command(path, args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s %v: %v\n%s", path, args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		key := tool(keygen, "-a", "ECDSAP256SHA256", "-k", z.Origin)
		args := []string{"-z", "1:1", "-f", files[z.Origin] + ".signed"}
		if nsec3 {
			args = append(args, "-n", "-s", "aabb", "-t", "1")
		}
		tool(signzone, append(args, files[z.Origin], key)...)
		files[z.Origin] += ".signed"
		text, err := os.ReadFile(filepath.Join(dir, key+".key"))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, strings.TrimSpace(strings.Split(string(text), ";")[0]))
	}
	return zones, files, keys
}

func TestSignedAgainstKnotAndNSD(t *testing.T) {
	if testing.Short() {
		t.Skip("asks other servers many questions")
	}
	for _, nsec3 := range []bool{false, true} {
		t.Run(fmt.Sprintf("nsec3=%v", nsec3), func(t *testing.T) {
			zones, files, _ := signed(t, 40, nsec3)
			compare(t, zones, files, 140, true, map[string]string{"knotd": knotd(t, files), "nsd": nsd(t, files)})
		})
	}
}

// TestDigests: the ZONEMD records that another program made are right, and any change is seen.
func TestDigests(t *testing.T) {
	zones, files, _ := signed(t, 10, false)
	for _, zt := range zones {
		z := file.NewZone(zt.Origin, files[zt.Origin])
		z.ZONEMD = true
		if err := z.Load(); err != nil {
			t.Error(err)
		}
		if err := z.Current().VerifyDigest(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(z.File())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(z.File(), []byte(strings.Replace(string(text), "192.0.2.53", "192.0.2.54", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := z.Load(); err == nil {
			t.Errorf("%s: a changed zone was taken", zt.Origin)
		}
	}
}

// server answers as a server does: in the wire lane where that is possible. spoil may change replies.
type server struct {
	f     file.File
	conn  net.PacketConn
	spoil atomic.Pointer[func(*dns.Msg)]
	wired atomic.Int64
}

func newServer(t testing.TB, f file.File) *server {
	t.Helper()
	conn, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{f: f, conn: conn}
	var wg sync.WaitGroup
	wg.Go(s.datagrams)
	wg.Go(func() { s.streams(l) })
	t.Cleanup(func() {
		conn.Close()
		l.Close()
		wg.Wait()
	})
	return s
}

func (s *server) datagrams() {
	in, out := make([]byte, 4096), make([]byte, 0, 8192)
	for {
		n, from, err := s.conn.ReadFrom(in)
		if err != nil {
			return
		}
		s.conn.WriteTo(s.spoilt(s.reply(in[:n], out)), from)
	}
}

func (s *server) streams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.SetDeadline(time.Now().Add(2 * time.Second))
		conn := dns.Conn{Conn: c}
		for {
			p, err := conn.ReadMsgHeader(nil)
			if err != nil {
				break
			}
			conn.Write(s.spoilt(s.reply(p, nil)))
		}
		conn.Close()
	}
}

func (s *server) spoilt(reply []byte) []byte {
	if spoil := s.spoil.Load(); spoil != nil {
		m := new(dns.Msg)
		if m.Unpack(reply) == nil {
			(*spoil)(m)
			reply, _ = m.Pack()
		}
	}
	return reply
}

func (s *server) reply(packet, out []byte) []byte {
	var q wire.Query
	var w wire.Reply
	w.Reset(out)
	if q.Parse(packet) && s.f.ServeWire(context.Background(), &w, &q) == wire.Done && w.Holds() {
		s.wired.Add(1)
		return w.Finish(&q, 4096)
	}
	m := new(dns.Msg)
	if m.Unpack(packet) != nil {
		return nil
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rcode, _ := s.f.ServeDNS(context.Background(), rec, m); rec.Msg == nil {
		rec.Msg = new(dns.Msg).SetRcode(m, rcode)
	}
	p, _ := rec.Msg.Pack()
	return p
}

// unbound is a validating resolver that asks addr for everything, and believes in keys.
func unbound(t testing.TB, addr string, zones []*zonetest.Zone, keys []string) (resolver string) {
	t.Helper()
	path, dir, port := zonetest.Program(t, "unbound", "unbound"), t.TempDir(), loopback.Port()
	host, upstream, _ := net.SplitHostPort(addr)
	var conf strings.Builder
	fmt.Fprintf(&conf, `server:
  interface: 127.0.0.1@%d
  username: ""
  chroot: ""
  directory: %q
  pidfile: %q
  use-syslog: no
  logfile: ""
  do-daemonize: no
  do-ip6: no
  do-tcp: no
  num-threads: 1
  do-not-query-localhost: no
  module-config: "validator iterator"
  cache-max-ttl: 0
  cache-max-negative-ttl: 0
  val-bogus-ttl: 0
  qname-minimisation: no
  aggressive-nsec: no
  harden-below-nxdomain: no
  edns-buffer-size: 4096
  max-udp-size: 4096
  infra-keep-probing: yes
  target-fetch-policy: "0 0 0 0 0"
  local-zone: "test." nodefault
`, port, dir, filepath.Join(dir, "pid"))
	for _, k := range keys {
		fmt.Fprintf(&conf, "  trust-anchor: %q\n", strings.ReplaceAll(k, "\t", " "))
	}
	conf.WriteString("remote-control:\n  control-enable: no\n")
	for _, z := range zones {
		fmt.Fprintf(&conf, "stub-zone:\n  name: %q\n  stub-addr: %s@%s\n", z.Origin, host, upstream)
	}
	if err := os.WriteFile(filepath.Join(dir, "unbound.conf"), []byte(conf.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	zonetest.Run(t, dir, path, "-d", "-c", filepath.Join(dir, "unbound.conf"))
	resolver = fmt.Sprintf("127.0.0.1:%d", port)
	zonetest.Await(t, resolver, zones[0].Origin, 0)
	return resolver
}

// resolve asks a resolver for what it believes.
func resolve(t testing.TB, resolver string, q zonetest.Question) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(q.Name, dns.StringToType[q.Type])
	m.SetEdns0(4096, true)
	c := dns.Client{Timeout: 5 * time.Second, UDPSize: 4096}
	reply, _, err := c.Exchange(m, resolver)
	if err != nil {
		t.Fatalf("%v: %v", q, err)
	}
	return reply
}

// outside reports whether what a question leads to cannot be asked for here: it is below a cut, out of the zone, or leads nowhere.
func outside(z *file.Zone, reply *dns.Msg) bool {
	if reply.Rcode == dns.RcodeServerFailure || !reply.Authoritative || endsInReferral(reply) {
		return true
	}
	seen := map[string]bool{}
	for _, rr := range reply.Answer {
		seen[strings.ToLower(rr.Header().Name)] = true
	}
	for _, rr := range reply.Answer {
		if c, ok := rr.(*dns.CNAME); ok && (!dns.IsSubDomain(z.Origin(), c.Target) || len(seen) > 8) {
			return true
		}
	}
	aliases := 0
	last := ""
	for _, rr := range reply.Answer {
		if c, ok := rr.(*dns.CNAME); ok {
			aliases++
			last = strings.ToLower(c.Target)
		}
	}
	return aliases > 0 && seen[last] && !hasOther(reply) // a circle
}

// hasOther reports whether the answer has more than aliases.
func hasOther(reply *dns.Msg) bool {
	for _, rr := range reply.Answer {
		switch rr.Header().Rrtype {
		case dns.TypeCNAME, dns.TypeDNAME, dns.TypeRRSIG:
		default:
			return true
		}
	}
	return false
}

// delv is what BIND's validator says of a question that it asks at addr.
func delv(t testing.TB, addr string, z *zonetest.Zone, key string, q zonetest.Question) string {
	t.Helper()
	path := zonetest.Program(t, "delv", "bind9-dnsutils")
	f := strings.Fields(key) // owner, class, type, flags, protocol, algorithm, key
	if f[0] != z.Origin || f[1] != "IN" || f[2] != "DNSKEY" {
		t.Fatalf("what key is %s?", key)
	}
	anchor := filepath.Join(t.TempDir(), "anchor")
	text := fmt.Sprintf("trust-anchors { %q static-key %s %s %s %q; };\n", z.Origin, f[3], f[4], f[5], strings.Join(f[6:], ""))
	if err := os.WriteFile(anchor, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	out, _ := exec.Command(path, "@"+host, "-p", port, "-a", anchor, "+root="+z.Origin, "+nocrypto", q.Name, q.Type).CombinedOutput()
	return string(out)
}

func TestValidated(t *testing.T) {
	if testing.Short() {
		t.Skip("asks a resolver 10,000 questions")
	}
	for _, nsec3 := range []bool{false, true} {
		t.Run(fmt.Sprintf("nsec3=%v", nsec3), func(t *testing.T) { validated(t, nsec3) })
	}
}

func validated(t *testing.T, nsec3 bool) {
	zones, files, keys := signed(t, 40, nsec3)
	f := ours(t, files)
	s := newServer(t, f)
	resolver := unbound(t, s.conn.LocalAddr().String(), zones, keys)
	asked, second, kinds := 0, 0, map[string]int{}
	var positive, negative zonetest.Question
	for i, zt := range zones {
		for _, q := range zt.Questions(uint64(i), 160) {
			m := new(dns.Msg).SetQuestion(q.Name, dns.StringToType[q.Type])
			m.SetEdns0(4096, true)
			reply, _ := answers(t, f, m)
			if !reply.Authoritative && len(reply.Ns) > 0 { // a referral: is its proof of the child's keys right?
				q = zonetest.Question{Name: reply.Ns[0].Header().Name, Type: "DS"}
				m = new(dns.Msg).SetQuestion(q.Name, dns.TypeDS)
				m.SetEdns0(4096, true)
				reply, _ = answers(t, f, m)
				kinds["delegation"]++
			}
			if q.Type == "DS" && q.Name == zt.Origin { // the parent's, whom nobody serves here
				continue
			}
			if outside(f.Zones.Z[zt.Origin], reply) {
				continue
			}
			asked++
			got := resolve(t, resolver, q)
			if !got.AuthenticatedData || got.Rcode != reply.Rcode || len(got.Answer) != len(reply.Answer) {
				// unbound 1.17 has its own mind about CNAME and DNAME queries that a DNAME answers, and about wildcards that are
				// empty non-terminals. BIND's validator has to believe these.
				second++
				if out := delv(t, s.conn.LocalAddr().String(), zt, keys[i], q); !strings.Contains(out, "fully validated") {
					t.Errorf("%v: AD %v, %s, %d answers; we said %s, %d answers\n%v\ndelv says %s", q, got.AuthenticatedData, dns.RcodeToString[got.Rcode], len(got.Answer), dns.RcodeToString[reply.Rcode], len(reply.Answer), reply, out)
				}
				continue
			}
			switch {
			case reply.Rcode == dns.RcodeNameError:
				kinds["NXDOMAIN"]++
				negative = q
			case len(reply.Answer) == 0:
				kinds["NODATA"]++
			case proofs(reply) > 0:
				kinds["wildcard"]++
			default:
				kinds["positive"]++
				if q.Type == "A" && reply.Answer[0].Header().Rrtype == dns.TypeA {
					positive = q
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d answers validated, %d of them by delv alone: %v; %d replies in the wire lane", asked, second, kinds, s.wired.Load())
	if second > asked/20 {
		t.Errorf("unbound did not believe %d answers", second)
	}
	for _, k := range []string{"positive", "NODATA", "NXDOMAIN", "wildcard", "delegation"} {
		if kinds[k] < 20 {
			t.Errorf("only %d of kind %s", kinds[k], k)
		}
	}
	for what, spoil := range map[string]struct {
		q zonetest.Question
		f func(*dns.Msg)
	}{
		"a spoilt signature": {positive, func(m *dns.Msg) {
			for _, rr := range m.Answer {
				if sig, ok := rr.(*dns.RRSIG); ok && sig.TypeCovered != dns.TypeDNSKEY {
					sig.Signature = "AAAA" + sig.Signature[4:]
				}
			}
		}},
		"a missing proof": {negative, func(m *dns.Msg) {
			var kept []dns.RR
			for _, rr := range m.Ns {
				if typ := rr.Header().Rrtype; typ != dns.TypeNSEC && typ != dns.TypeNSEC3 {
					kept = append(kept, rr)
				}
			}
			m.Ns = kept
		}},
	} {
		if got := resolve(t, resolver, spoil.q); got.Rcode == dns.RcodeServerFailure {
			t.Errorf("%s: %v fails before", what, spoil.q)
		}
		s.spoil.Store(&spoil.f)
		if got := resolve(t, resolver, spoil.q); got.Rcode != dns.RcodeServerFailure {
			t.Errorf("%s was believed: %v", what, got)
		}
		s.spoil.Store(nil)
	}
}

// proofs is the NSEC and NSEC3 records of a reply.
func proofs(m *dns.Msg) (n int) {
	for _, rr := range m.Ns {
		if typ := rr.Header().Rrtype; typ == dns.TypeNSEC || typ == dns.TypeNSEC3 {
			n++
		}
	}
	return n
}
