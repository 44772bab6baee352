package dnsserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// oracle answers each question in a way that follows from the question alone: with more or less records, errors,
// nothing in the answer; some in the wire lane, some in the message lane, some after a while.
type oracle struct{}

func (oracle) Name() string               { return "oracle" }
func (h oracle) WireSelf() plugin.Handler { return h }

func fate(name string, qtype uint16) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, strings.ToLower(name), qtype)
	return h.Sum32()
}

func (h oracle) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	q := r.Question[0]
	n := fate(q.Name, q.Qtype)
	if n%7 == 0 {
		return dns.RcodeRefused, nil
	}
	if n%11 == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = n%2 == 0
	for i := range n % 20 {
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: n % 1000}, A: net.IPv4(192, 0, 2, byte(i))})
	}
	if len(m.Answer) == 0 {
		m.Rcode = dns.RcodeNameError
		m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: "org.", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 60}, Ns: "ns.org.", Mbox: "h.org.", Serial: n}}
	}
	return 0, w.WriteMsg(m)
}

func (h oracle) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	name, _, _ := dns.UnpackDomainName(q.Name(), 0)
	n := fate(name, q.Type())
	switch {
	case n%3 == 0:
		return wire.Unpack
	case n%5 == 0 && !q.MayBlock():
		return wire.Block
	}
	r := new(dns.Msg)
	r.Unpack(q.Packet())
	out := &kept{}
	rc, _ := h.ServeDNS(ctx, out, r)
	if out.m == nil {
		w.Fail(rc, nil)
		return wire.Done
	}
	if err := w.SetMsg(out.m); err != nil {
		w.Fail(dns.RcodeServerFailure, err)
	}
	return wire.Done
}

// kept is a writer that keeps what is written.
type kept struct {
	dns.ResponseWriter
	m *dns.Msg
}

func (k *kept) WriteMsg(m *dns.Msg) error {
	k.m = m
	return nil
}

// questions are n queries of many kinds.
func questions(n int) (all []*dns.Msg) {
	random := rand.New(rand.NewPCG(7, 9))
	types := []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeHTTPS, dns.TypeANY, 65280}
	for i := range n {
		m := new(dns.Msg).SetQuestion(fmt.Sprintf("N%d.Example.ORG.", random.IntN(300)), types[random.IntN(len(types))])
		m.Id = 0
		m.RecursionDesired, m.CheckingDisabled = random.IntN(2) == 0, random.IntN(4) == 0
		if random.IntN(2) == 0 {
			m.SetEdns0([]uint16{512, 1232, 4096}[random.IntN(3)], random.IntN(2) == 0)
			switch random.IntN(5) {
			case 0:
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID}}
			case 1:
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}}
			case 2:
				m.IsEdns0().SetVersion(uint8(i % 2))
			}
		}
		all = append(all, m)
	}
	return all
}

// serverCookie is what ends with a time, and a hash over it.
var serverCookie = regexp.MustCompile("(COOKIE: [0-9a-f]{16})01000000[0-9a-f]{24}")

// TestSameAnswers asks 500 questions by each transport: the answers are the same.
func TestSameAnswers(t *testing.T) {
	all := questions(500)
	want := make([]string, len(all))
	for _, scheme := range append([]string{"dns", "udp"}, schemes[1:]...) {
		s := serving(t, blockFor(t, strings.Replace(scheme, "udp", "dns", 1), oracle{}))
		var c clients.Client = clients.UDPClient{Addr: s.udp}
		if scheme != "udp" {
			c = clients.Connect(t, scheme, s.addr)
		}
		got, cut := make([]string, len(all)), new(atomic.Int32)
		var wg sync.WaitGroup
		slots := make(chan struct{}, 20)
		for i, m := range all {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				r, err := c.Ask(m.Copy())
				if err != nil {
					t.Errorf("%s, question %d: %v", scheme, i, err)
					return
				}
				if r.Truncated {
					got[i] = want[i]
					cut.Add(1)
					return
				}
				r.Id = 0
				got[i] = serverCookie.ReplaceAllString(r.String(), "$1 and a server cookie")
			})
		}
		wg.Wait()
		for i := range all {
			if scheme == "dns" {
				want[i] = got[i]
			} else if got[i] != want[i] {
				t.Errorf("%s, question %d:\n%v\ngot\n%s\nover TCP\n%s", scheme, i, all[i], got[i], want[i])
				break
			}
		}
		if n := cut.Load(); n > 0 && scheme != "udp" {
			t.Errorf("%s: %d replies were cut", scheme, n)
		}
		c.Close()
	}
}

const tsigSecret = "c2VjcmV0IG9mIDMyIG9jdGV0cyBmb3IgdGVzdHMuLi4="

// TestSameSignatures sends signed queries by each transport: the verdicts are the same, and replies are signed.
func TestSameSignatures(t *testing.T) {
	verdict := handler{"verdict", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		text := "unsigned"
		if r.IsTsig() != nil {
			text = fmt.Sprint(w.TsigStatus())
		}
		m.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{text}}}
		if t := r.IsTsig(); t != nil && w.TsigStatus() == nil {
			m.SetTsig(t.Hdr.Name, t.Algorithm, 300, time.Now().Unix())
		}
		return 0, w.WriteMsg(m)
	}}
	for _, scheme := range append([]string{"udp"}, schemes...) {
		cfg := blockFor(t, strings.Replace(scheme, "udp", "dns", 1), verdict)
		cfg.TsigSecret = map[string]string{"key.example.org.": tsigSecret}
		s := serving(t, cfg)
		for _, tc := range []struct {
			name, key, secret string
			at                time.Time
			spoil             bool
			want              string
		}{
			{"absent", "", "", time.Time{}, false, "unsigned"},
			{"good", "key.example.org.", tsigSecret, time.Now(), false, "<nil>"},
			{"other key", "other.example.org.", tsigSecret, time.Now(), false, "dns: no secrets defined"},
			{"bad MAC", "key.example.org.", "YW5vdGhlciBzZWNyZXQ=", time.Now(), false, "dns: bad signature"},
			{"bad time", "key.example.org.", tsigSecret, time.Now().Add(-time.Hour), false, "dns: bad time"},
		} {
			m := new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT)
			m.Id = 0
			b, mac := packed(t, m), ""
			if tc.key != "" {
				m.SetTsig(tc.key, dns.HmacSHA256, 300, tc.at.Unix())
				var err error
				if b, mac, err = dns.TsigGenerate(m, tc.secret, "", false); err != nil {
					t.Fatal(err)
				}
			}
			got, err := exchangeBytes(t, scheme, s, b)
			if err != nil {
				t.Errorf("%s, %s: %v", scheme, tc.name, err)
				continue
			}
			r := new(dns.Msg)
			if err := r.Unpack(got); err != nil || len(r.Answer) != 1 {
				t.Errorf("%s, %s: %v, %v", scheme, tc.name, r, err)
				continue
			}
			if text := r.Answer[0].(*dns.TXT).Txt[0]; text != tc.want {
				t.Errorf("%s, %s: got %q, want %q", scheme, tc.name, text, tc.want)
			}
			if tc.name == "good" {
				if err := dns.TsigVerify(got, tsigSecret, mac, false); err != nil {
					t.Errorf("%s: the reply's signature: %v", scheme, err)
				}
			}
		}
	}
}

// exchangeBytes sends a packet as it is and returns the reply as it is.
func exchangeBytes(t *testing.T, scheme string, s *served, b []byte) ([]byte, error) {
	t.Helper()
	if scheme == "udp" {
		return clients.UDPClient{Addr: s.udp}.Raw(b)
	}
	c := clients.Connect(t, scheme, s.addr)
	defer c.Close()
	return c.Raw(b)
}

// curl asks with curl.
func curl(t *testing.T, addr string, post bool, version string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "query")
	b := packed(t, query("www."))
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-sSk", "-o", file + ".reply", "-w", "%{http_code} %{http_version} %{content_type}", "--http" + map[string]string{"1": "1.1", "2": "2"}[version]}
	url := "https://" + addr + doh.Path
	if post {
		args = append(args, "-H", "Content-Type: "+doh.MimeType, "--data-binary", "@"+file, url)
	} else {
		args = append(args, url+"?dns="+base64.RawURLEncoding.EncodeToString(b))
	}
	out, err := exec.Command("curl", args...).CombinedOutput()
	reply, _ := os.ReadFile(file + ".reply")
	m := new(dns.Msg)
	if err != nil || !strings.HasPrefix(string(out), "200 "+version) || !strings.HasSuffix(string(out), doh.MimeType) || m.Unpack(reply) != nil || describe(m) != "NOERROR 192.0.2.1" {
		t.Errorf("curl %v: %v, %s, %v", args, err, out, m)
	}
}

// TestRealClients asks with programs of others, those that are installed.
func TestRealClients(t *testing.T) {
	h := new(laneHandler)
	for _, tc := range []struct {
		scheme, program string
		args            []string
	}{
		{"dns", "kdig", []string{"+tcp"}},
		{"tls", "kdig", []string{"+tls", "+padding"}},
		{"https", "kdig", []string{"+https", "+padding"}},
		{"https", "kdig", []string{"+https", "+https-get"}},
		{"quic", "kdig", []string{"+quic", "+padding"}},
		{"https", "curl-get-2", nil},
		{"https", "curl-post-2", nil},
		{"https", "curl-get-1", nil},
		{"https", "curl-post-1", nil},
	} {
		program, _, _ := strings.Cut(tc.program, "-")
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not installed", program)
			continue
		}
		s := serving(t, blockFor(t, tc.scheme, h))
		if program == "curl" {
			curl(t, s.addr, strings.Contains(tc.program, "post"), tc.program[len(tc.program)-1:])
			continue
		}
		host, port, _ := net.SplitHostPort(s.addr)
		for _, name := range []string{"www.", "unpack.", "park."} {
			out, err := exec.Command(program, append([]string{"@" + host, "-p", port, name, "A"}, tc.args...)...).CombinedOutput()
			if strings.Contains(string(out), "not supported") || strings.Contains(string(out), "invalid option") {
				t.Logf("%s has no %s", program, tc.args[0])
				break
			}
			if err != nil || !strings.Contains(string(out), "status: NOERROR") || !strings.Contains(string(out), "192.0.2.") {
				t.Errorf("%s %s %v: %v\n%s", program, name, tc.args, err, out)
			}
			if len(tc.args) > 1 && tc.args[1] == "+padding" && !strings.Contains(string(out), "PADDING") {
				t.Errorf("%s %v: no padding\n%s", program, tc.args, out)
			}
		}
	}
}
