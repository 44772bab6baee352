package test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

const tsigSecret = "bm90LWEtcmVhbC1zZWNyZXQtYnV0LWZpbmU="

// A signed query that somebody passed on with an id of his own gets a reply with that id, which the client, for whom
// the id is put back, can check all the same: the TSIG record has the id that the reply was made with (RFC 8945 §4.2).
func TestTsigOfForwardedQueries(t *testing.T) {
	_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\ntsig . {\nsecret key. "+tsigSecret+"\n}\nwhoami\n}")
	const own, others = 4711, 815
	for name, tc := range map[string]struct {
		key, secret string
		at          time.Time
		rcode       int
		code        uint16
	}{
		"good":        {"key.", tsigSecret, time.Now(), dns.RcodeSuccess, 0},
		"unknown key": {"nokey.", tsigSecret, time.Now(), dns.RcodeNotAuth, dns.RcodeBadKey},
		"bad":         {"key.", "AAAA", time.Now(), dns.RcodeNotAuth, dns.RcodeBadSig},
		"too old":     {"key.", tsigSecret, time.Unix(1700000000, 0), dns.RcodeNotAuth, dns.RcodeBadTime},
	} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			t.Run(fmt.Sprint(name, " ", network), func(t *testing.T) {
				r := question("example.org.", dns.TypeA)
				r.Id = own
				r.SetTsig(tc.key, dns.HmacSHA256, 300, tc.at.Unix())
				packet, mac, err := dns.TsigGenerate(r, tc.secret, "", false)
				if err != nil {
					t.Fatal(err)
				}
				binary.BigEndian.PutUint16(packet, others)
				b := exchange(t, network, addr, packet)
				m := new(dns.Msg)
				if err := m.Unpack(b); err != nil {
					t.Fatal(err)
				}
				if m.Id != others || m.Rcode != tc.rcode || m.IsTsig() == nil || m.IsTsig().Error != tc.code {
					t.Fatalf("got id %d, want %d: %v", m.Id, others, m)
				}
				if id := m.IsTsig().OrigId; id != others {
					t.Errorf("the original id is %d, want that of the reply", id)
				}
				if tc.code == 0 {
					if err := dns.TsigVerify(b, tc.secret, mac, false); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// What the server replies before any plugin is asked is signed as the query is (RFC 8945 §5.3): a client that signs takes nothing else.
func TestTsigOfRefusals(t *testing.T) {
	_, udp, tcp := start(t, "example.org:0 {\nbind 127.0.0.1\ntsig . {\nsecret key. "+tsigSecret+"\n}\nwhoami\n}")
	for name, tc := range map[string]struct {
		edit  func(*dns.Msg)
		rcode int
	}{
		"EDNS version": {func(r *dns.Msg) { r.SetEdns0(1232, false).IsEdns0().SetVersion(1) }, dns.RcodeBadVers},
		"other zone":   {func(r *dns.Msg) { r.Question[0].Name = "example.net." }, dns.RcodeRefused},
		"other class":  {func(r *dns.Msg) { r.SetEdns0(1232, true); r.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
	} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			for secret, signed := range map[string]bool{tsigSecret: true, "AAAA": false} {
				r := question("example.org.", dns.TypeA)
				tc.edit(r)
				packet, mac, err := dns.TsigGenerate(r.SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix()), secret, "", false)
				if err != nil {
					t.Fatal(err)
				}
				b, m := exchange(t, network, addr, packet), new(dns.Msg)
				if err := m.Unpack(b); err != nil || m.Rcode != tc.rcode || (m.IsTsig() != nil) != signed {
					t.Errorf("%s over %s, signed well %v: %v\n%v", name, network, signed, err, m)
				} else if signed && dns.TsigVerify(b, secret, mac, false) != nil {
					t.Errorf("%s over %s: a bad signature", name, network)
				}
			}
		}
	}
}

// Without a secret no signature is good, whoever signs.
func TestTsigWithoutSecrets(t *testing.T) {
	_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\ntsig . {\nrequire all\n}\nwhoami\n}")
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		r := question("example.org.", dns.TypeA).SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix())
		packet, _, err := dns.TsigGenerate(r, tsigSecret, "", false)
		if err != nil {
			t.Fatal(err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(exchange(t, network, addr, packet)); err != nil {
			t.Fatal(err)
		}
		if sig := m.IsTsig(); m.Rcode != dns.RcodeNotAuth || sig == nil || sig.Error != dns.RcodeBadKey {
			t.Errorf("%s: got %v", network, m)
		}
	}
}

// What a signed query leads to, an alias of another zone or an address to make another one of, is asked for its client:
// it needs no signature of its own. An unsigned query leads to nothing that has to be signed.
func TestTsigOfInnerQuestions(t *testing.T) {
	dir := t.TempDir()
	text := "$TTL 60\n@ IN SOA ns h 1 2 3 4 5\n@ IN NS ns\nalias IN CNAME target.example.net.\ntwice IN CNAME alias.example.com.\n"
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const signed = "tsig {\nsecret key. " + tsigSecret + "\nrequire all\n}\n"
	_, udp, tcp := start(t, "example.org:0 {\nbind 127.0.0.1\n"+signed+"dns64 {\nallow_ipv4\n}\nfile "+dir+"/db\n}\n"+
		"example.com:0 {\nbind 127.0.0.1\nfile "+dir+"/db\n}\n"+
		"example.net:0 {\nbind 127.0.0.1\n"+signed+"template IN A {\nanswer \"{{ .Name }} 60 IN A 192.0.2.1\"\n}\ntemplate IN AAAA {\nrcode NOERROR\n}\n}")
	for _, tc := range []struct {
		name   string
		typ    uint16
		signed bool
		want   string
	}{
		{"alias.example.org.", dns.TypeA, true, "NOERROR 2"},
		{"twice.example.org.", dns.TypeA, true, "NOERROR 3"},
		{"alias.example.org.", dns.TypeAAAA, true, "NOERROR 2"},
		{"alias.example.org.", dns.TypeA, false, "REFUSED 0"},
		{"alias.example.com.", dns.TypeA, false, "NOERROR 1"},
		{"target.example.net.", dns.TypeA, false, "REFUSED 0"},
	} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			r := question(tc.name, tc.typ)
			packet, err := r.Pack()
			if tc.signed {
				packet, _, err = dns.TsigGenerate(r.SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix()), tsigSecret, "", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			m := new(dns.Msg)
			if err := m.Unpack(exchange(t, network, addr, packet)); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(dns.RcodeToString[m.Rcode], " ", len(m.Answer)); got != tc.want || (m.IsTsig() != nil) != tc.signed {
				t.Errorf("%s %s over %s, signed %t: %s, want %s\n%v", tc.name, dns.TypeToString[tc.typ], network, tc.signed, got, tc.want, m)
			}
		}
	}
}

// exchange sends a packet and reads the reply.
func exchange(t *testing.T, network, addr string, packet []byte) []byte {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(prompt))
	if network == "tcp" {
		c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...))
		b, err := readFrame(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c.Write(packet)
	b := make([]byte, wire.MaxMessage)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// A reply that another server has signed reaches the client octet by octet, apart from its id: the cookie that dig sends by default is
// answered by who signed.
func TestTsigThroughForward(t *testing.T) {
	upstream := signingServer(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Compress = r.Question[0].Qtype == dns.TypeA
		for i := range 9 {
			m.Answer = append(m.Answer, test.A(fmt.Sprintf("example.org. 300 IN A 192.0.2.%d", i)))
		}
		m.Ns = []dns.RR{test.NS("example.org. 300 IN NS ns.example.org.")}
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "01020304050607080102030405060708"}}
		m.SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix())
		w.WriteMsg(m)
	})
	_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nloadbalance\ncache\nminimal\nforward . "+upstream+"\n}")
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		for _, typ := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeA} { // names are compressed for A; what comes again is not kept
			r := question("example.org.", typ)
			r.SetEdns0(4096, false)
			withCookie(r, "0102030405060708")
			r.SetTsig("key.", dns.HmacSHA256, 300, time.Now().Unix())
			packet, mac, err := dns.TsigGenerate(r, tsigSecret, "", false)
			if err != nil {
				t.Fatal(err)
			}
			if err := dns.TsigVerify(exchange(t, network, addr, packet), tsigSecret, mac, false); err != nil {
				t.Errorf("%s, %s: %v", network, dns.TypeToString[typ], err)
			}
		}
	}
}

// signingServer is the address of a server that knows the key "key.".
func signingServer(t *testing.T, f dns.HandlerFunc) string {
	t.Helper()
	conn, listener, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: conn}, {Listener: listener}} {
		s.Handler, s.TsigSecret = f, map[string]string{"key.": tsigSecret}
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go s.ActivateAndServe()
		<-started
		t.Cleanup(func() { s.Shutdown() })
	}
	return conn.LocalAddr().String()
}
