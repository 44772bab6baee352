package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/local"
	"github.com/coredns/coredns/plugin/nomad"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// insert is an UPDATE that adds one record.
func insert(t testing.TB, text string) *dns.Msg {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg).SetUpdate("example.org.")
	m.Insert([]dns.RR{rr})
	return m
}

// TestForwardedUpdates: a secondary, and forward, pass updates on with their signatures, over UDP and TCP; the answer's signature is the primary's.
func TestForwardedUpdates(t *testing.T) {
	primary := dynamic(t, t.TempDir(), "transfer {\nto *\n}", "")
	for name, block := range map[string]string{
		"secondary":      "secondary {\ntransfer from " + primary + "\nforward_updates\n}",
		"dynupdate":      "dynupdate {\nforward " + primary + "\n}\nsecondary {\ntransfer from " + primary + "\n}",
		"forward":        "forward . " + primary + " {\nforward_updates\n}",
		"below all else": "log\nerrors\nprometheus 127.0.0.1:0\nloadbalance\nheader {\nresponse set ra\n}\ncache\nminimal\nnsid x\nforward . " + primary + " {\nforward_updates\n}",
		"signed between": "tsig {\nsecret " + updateKey + " " + updateSecret + "\n}\nforward . " + primary + " {\nforward_updates\n}",
	} {
		t.Run(name, func(t *testing.T) {
			port := loopback.Port()
			addr := fmt.Sprintf("127.0.0.1:%d", port)
			start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\n%s\n}", port, block))
			for i, network := range []string{"udp", "tcp"} {
				text := fmt.Sprintf("%s-%d.example.org. 60 IN TXT yes", name[:3], i)
				if reply := sendUpdate(t, network, addr, insert(t, text)); reply.Rcode != 0 {
					t.Fatal(reply)
				}
				asked := question(fmt.Sprintf("%s-%d.example.org.", name[:3], i), dns.TypeTXT)
				if reply := ask(t, network, primary, asked); reply == nil || len(reply.Answer) != 1 {
					t.Errorf("the primary has not got it: %v", reply)
				}
			}
			bad := insert(t, "x.example.org. 60 IN TXT no")
			if reply := ask(t, "udp", addr, bad); reply == nil || reply.Rcode != dns.RcodeRefused {
				t.Errorf("an update without a signature: %v", reply)
			}
		})
	}
}

// TestForwardedUpdatesOfMembers: the zones that a catalog lists are as those of the Corefile.
func TestForwardedUpdatesOfMembers(t *testing.T) {
	dir, at, port := t.TempDir(), loopback.Port(), loopback.Port()
	list := filepath.Join(dir, "catalog")
	text := "$TTL 60\n@ SOA invalid. invalid. 1 3600 600 86400 60\n@ NS invalid.\nversion TXT 2\nm.zones PTR example.org.\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dynamicCorefile(t, dir, at, "transfer {\nto *\n}", "")+fmt.Sprintf("\ncatalog.test:%d {\nbind 127.0.0.1\nfile %s\ntransfer {\nto *\n}\n}", at, list))
	start(t, fmt.Sprintf(".:%d {\nbind 127.0.0.1\nsecondary catalog.test {\ntransfer from 127.0.0.1:%d\ncatalog\nforward_updates\n}\n}", port, at))
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if reply := ask(t, "udp", addr, question("example.org.", dns.TypeSOA)); reply != nil && len(reply.Answer) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the member has not come")
		}
	}
	if reply := sendUpdate(t, "udp", addr, insert(t, "member.example.org. 60 IN TXT yes")); reply.Rcode != 0 {
		t.Fatal(reply)
	}
	if reply := ask(t, "udp", fmt.Sprintf("127.0.0.1:%d", at), question("member.example.org.", dns.TypeTXT)); reply == nil || len(reply.Answer) != 1 {
		t.Errorf("the primary has not got it: %v", reply)
	}
}

// TestUpdatesSignedAnew: with a key of its own, dynupdate lets the rules here decide, and signs for the primary and for the client; with the primary
// down the client gets SERVFAIL.
func TestUpdatesSignedAnew(t *testing.T) {
	primary := dynamic(t, t.TempDir(), "", "")
	block := func(to string) (addr string) {
		port := loopback.Port()
		start(t, fmt.Sprintf(`example.org:%d {
			bind 127.0.0.1
			tsig {
				secret edge. %s
				secret %s %s
			}
			dynupdate {
				forward %s tsig %s hmac-sha256
				allow edge. new.example.org. A
			}
		}`, port, updateSecret, updateKey, updateSecret, to, updateKey))
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	addr, lonely := block(primary), block(fmt.Sprintf("127.0.0.1:%d", loopback.Port()))
	send := func(network, to, key, text string) string {
		t.Helper()
		c := dns.Client{Net: network, Timeout: 10 * time.Second, TsigSecret: map[string]string{key: updateSecret}}
		m := insert(t, text)
		m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
		reply, _, err := c.Exchange(m, to)
		if err != nil {
			t.Fatal(err)
		}
		if sig := reply.IsTsig(); sig == nil || sig.Hdr.Name != key {
			t.Errorf("%s: the answer is not signed by %s: %v", text, key, reply)
		}
		return dns.RcodeToString[reply.Rcode]
	}
	for i, network := range []string{"udp", "tcp"} {
		if rcode := send(network, addr, "edge.", fmt.Sprintf("new.example.org. 60 IN A 192.0.2.%d", i)); rcode != "NOERROR" {
			t.Errorf("%s: %s", network, rcode)
		}
		if reply := ask(t, network, primary, question("new.example.org.", dns.TypeA)); reply == nil || len(reply.Answer) != i+1 {
			t.Errorf("the primary has not got it: %v", reply)
		}
	}
	for _, tc := range []struct{ to, key, text, rcode string }{
		{addr, "edge.", "new.example.org. 60 IN TXT no", "REFUSED"},
		{addr, "edge.", "www.example.org. 60 IN A 192.0.2.9", "REFUSED"},
		{addr, updateKey, "new.example.org. 60 IN A 192.0.2.9", "REFUSED"}, // which the primary would take
		{lonely, "edge.", "new.example.org. 60 IN A 192.0.2.9", "SERVFAIL"},
	} {
		if rcode := send("tcp", tc.to, tc.key, tc.text); rcode != tc.rcode {
			t.Errorf("%s by %s: %s, want %s", tc.text, tc.key, rcode, tc.rcode)
		}
	}
	if reply := ask(t, "udp", addr, insert(t, "new.example.org. 60 IN A 192.0.2.9")); reply == nil || reply.Rcode != dns.RcodeRefused {
		t.Errorf("without a signature: %v", reply)
	}
	if reply := ask(t, "udp", primary, question("new.example.org.", dns.TypeA)); reply == nil || len(reply.Answer) != 2 {
		t.Errorf("the primary has %v", reply)
	}
	if reply := ask(t, "udp", addr, new(dns.Msg).SetUpdate("sub.example.org.")); reply == nil || reply.Rcode != dns.RcodeNotAuth {
		t.Errorf("for another zone of the block: %v", reply)
	}
}

// TestUpdatesNotForwarded: without the option nobody passes updates on, though another plugin of the block takes them.
func TestUpdatesNotForwarded(t *testing.T) {
	primary := dynamic(t, t.TempDir(), "", "")
	seed := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(seed, []byte(updateSeed), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]string{
		"forward": "forward . " + primary,
		"grpc":    "grpc . " + primary,
		"file":    "file " + seed + "\nforward . " + primary,
	} {
		t.Run(name, func(t *testing.T) {
			port := loopback.Port()
			// Who opts in is a secondary of another zone of the block.
			start(t, fmt.Sprintf("example.org:%d example.net:%d {\nbind 127.0.0.1\nsecondary example.net {\ntransfer from %s\nforward_updates\n}\n%s\n}", port, port, primary, block))
			c := dns.Client{TsigSecret: map[string]string{updateKey: updateSecret}}
			m := insert(t, "x.example.org. 60 IN TXT no")
			m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
			reply, _, _ := c.Exchange(m, fmt.Sprintf("127.0.0.1:%d", port))
			if reply == nil || reply.Rcode != dns.RcodeRefused {
				t.Errorf("%v", reply)
			}
			if reply := ask(t, "udp", primary, question("x.example.org.", dns.TypeTXT)); reply == nil || reply.Rcode != dns.RcodeNameError {
				t.Errorf("it was passed on: %v", reply)
			}
		})
	}
}

// TestUpdateInCircles: an update that comes back to who passed it on is refused.
func TestUpdateInCircles(t *testing.T) {
	port := loopback.Port()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nforward . %s {\nforward_updates\n}\n}", port, addr))
	for _, network := range []string{"udp", "tcp"} {
		if reply := ask(t, network, addr, insert(t, "x.example.org. 60 IN TXT no")); reply == nil || reply.Rcode != dns.RcodeRefused {
			t.Errorf("%s: %v", network, reply)
		}
	}
	dead := loopback.Port()
	port = loopback.Port()
	start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nforward . 127.0.0.1:%d {\nforward_updates\n}\n}", port, dead))
	if reply := ask(t, "tcp", fmt.Sprintf("127.0.0.1:%d", port), insert(t, "x.example.org. 60 IN TXT no")); reply == nil || reply.Rcode != dns.RcodeServerFailure {
		t.Errorf("a primary that is down: %v", reply)
	}
}

// Updates come to the plugin that serves the zone from its own data, though others answer queries for its names before it.
func TestUpdatesPassWhoAnswers(t *testing.T) {
	for name, above := range map[string]string{
		"hosts":    "hosts {\n192.0.2.1 www.example.org\n}",
		"template": "template ANY ANY {\nanswer \"{{ .Name }} 60 IN A 192.0.2.1\"\n}",
		"both":     "local\nhosts {\n192.0.2.1 www.example.org\nfallthrough\n}\ntemplate IN SOA {\nrcode NXDOMAIN\n}",
	} {
		t.Run(name, func(t *testing.T) {
			addr := dynamic(t, t.TempDir(), above, "")
			m := insert(t, "new.example.org. 60 IN TXT yes")
			if reply := sendUpdate(t, "udp", addr, m); reply.Rcode != 0 || reply.Opcode != dns.OpcodeUpdate {
				t.Errorf("got %v", reply)
			}
			m = insert(t, "more.example.org. 60 IN TXT yes")
			m.Used([]dns.RR{test.TXT("new.example.org. 0 IN TXT yes")})
			if reply := sendUpdate(t, "udp", addr, m); reply.Rcode != 0 {
				t.Errorf("it was not made: %v", reply)
			}
			m.Answer = []dns.RR{test.TXT("none.example.org. 0 IN TXT yes")}
			if reply := sendUpdate(t, "udp", addr, m); reply.Rcode != dns.RcodeNXRrset {
				t.Errorf("what it depends on is not there: %v", reply)
			}
		})
	}
}

// So they do with those that need something to answer from. (autopath and k8s_external have such a test of their own.)
func TestUpdatesPassSources(t *testing.T) {
	const taken = 77
	next := plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return taken, nil })
	zones := []string{"example.org."}
	k := kubernetes.New(zones)
	k.Next = next
	for _, h := range []plugin.Handler{
		k, local.Local{Next: next}, &etcd.Etcd{Next: next, Zones: zones}, &nomad.Nomad{Next: next, Zone: zones[0]},
	} {
		m := new(dns.Msg).SetUpdate("example.org.")
		if h.Name() == "local" {
			m.SetUpdate("localhost.")
		}
		if code, err := h.ServeDNS(t.Context(), &test.ResponseWriter{}, m); code != taken || err != nil {
			t.Errorf("%s: %d, %v", h.Name(), code, err)
		}
	}
}
