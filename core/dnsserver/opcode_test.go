package dnsserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// update is an UPDATE of the zone with more records than a query may have.
func update(zone string) *dns.Msg {
	m := new(dns.Msg).SetUpdate(zone)
	for range 3 {
		m.RRsetUsed([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeA}}})
		m.RemoveName([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeA}}})
	}
	return m
}

// opcodes counts UPDATEs and bad signatures.
type opcodes struct {
	updates atomic.Int32
	bad     atomic.Int32 // those with a bad signature
}

func (o *opcodes) Name() string { return "opcodes" }
func (o *opcodes) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate {
		o.updates.Add(1)
	}
	if w.TsigStatus() != nil {
		o.bad.Add(1)
	}
	return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetReply(r))
}

// An UPDATE comes to plugins of a block that takes it over UDP, TCP and TLS only. Over others it gets NOTIMP; if nobody takes
// it, they reject it by their own means. In every case it is no plugin's who did not ask for it.
func TestEachSchemeUpdates(t *testing.T) {
	eachScheme(t, func(t *testing.T, scheme string) {
		for _, allowed := range []bool{true, false} {
			h := new(opcodes)
			cfg := blockFor(t, scheme, h)
			if allowed {
				cfg.AllowOpcode(dns.OpcodeUpdate)
				cfg.AllowOpcode(-1)
				cfg.AllowOpcode(16)
			}
			s := serving(t, cfg)
			asked := []clients.Client{clients.Connect(t, scheme, s.addr)}
			plain := scheme == "dns" || scheme == "tls"
			if scheme == "dns" {
				asked = append(asked, clients.UDPClient{Addr: s.udp})
			}
			for _, c := range asked {
				before := h.updates.Load()
				r, err := c.Ask(update("example.org."))
				switch reached := h.updates.Load() - before; {
				case reached != 0 && !(allowed && plain):
					t.Errorf("allowed %v: the plugin saw it", allowed)
				case allowed && plain && (err != nil || reached != 1 || r.Rcode != dns.RcodeSuccess || r.Opcode != dns.OpcodeUpdate):
					t.Errorf("allowed: got %v, %v, the plugin saw %d", r, err, reached)
				case !allowed && plain && (err != nil || r.Rcode != dns.RcodeNotImplemented):
					t.Errorf("not allowed: got %v, %v", r, err)
				case !plain && allowed && (err != nil || r.Rcode != dns.RcodeNotImplemented || r.Opcode != dns.OpcodeUpdate || len(r.Question) != 1 || len(r.Ns) > 0):
					t.Errorf("allowed elsewhere: got %v, %v", r, err)
				case !plain && !allowed && err == nil:
					t.Errorf("not allowed: got %v", r)
				}
			}
			if r, err := clients.Connect(t, scheme, s.addr).Ask(query("www.")); err != nil || r.Rcode != dns.RcodeSuccess {
				t.Errorf("afterwards: %v, %v", r, err)
			}
		}
	})
}

// Over HTTPS an UPDATE is a bad request where no block takes any, and so is one that would fill memory.
func TestHTTPSRejects(t *testing.T) {
	s := serving(t, blockFor(t, "https", new(opcodes)))
	many := packed(t, query("www."))
	for many[10], many[11] = 0x17, 0x3F; len(many)+11 <= 65533; {
		many = append(many, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
	}
	c := &http.Client{Timeout: clients.AskTime, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer c.CloseIdleConnections()
	for name, b := range map[string][]byte{"update": packed(t, update("example.org.")), "many records": many} {
		r, err := c.Post("https://"+s.addr+"/dns-query", "application/dns-message", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, r.StatusCode)
		}
	}
}

// An UPDATE with a bad signature comes to the plugins, which are told so; with a good one, too.
func TestUpdateIsVerified(t *testing.T) {
	const key, secret = "key.example.org.", "c2VjcmV0IG9mIDMyIG9jdGV0cyBmb3IgdGVzdHMuLi4="
	h := new(opcodes)
	cfg := block1(".", h)
	cfg.TsigSecret = map[string]string{key: secret}
	cfg.AllowOpcode(dns.OpcodeUpdate)
	_, udp, tcp := running(t, cfg)
	for _, tc := range []struct {
		secret string
		bad    int32
	}{{secret, 0}, {"YW5vdGhlciBzZWNyZXQ=", 1}} {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			m := update("example.org.")
			m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
			c := &dns.Client{Net: network, Timeout: clients.AskTime, TsigSecret: map[string]string{key: tc.secret}}
			updates, bad := h.updates.Load(), h.bad.Load()
			c.Exchange(m, addr) // the reply is not signed, which is an error for c
			if h.updates.Load() != updates+1 || h.bad.Load() != bad+tc.bad {
				t.Errorf("%s, %s: %d updates, %d bad", network, tc.secret, h.updates.Load()-updates, h.bad.Load()-bad)
			}
		}
	}
}

// Plugins ask in setup, once for all keys of a block.
func TestSetupAllowsOpcode(t *testing.T) {
	probed(t)
	probing.setup = func(c *caddy.Controller) {
		if c.ServerBlockIndex == 0 {
			GetConfig(c).AllowOpcode(dns.OpcodeUpdate)
		}
	}
	i := started(t, "a.example:0 b.example:0 {\nprobe one\n}\nc.example:0 {\nprobe two\n}")
	addr := i.Servers()[0].Addr().String()
	for zone, rcode := range map[string]int{"a.example.": 0, "b.example.": 0, "c.example.": dns.RcodeNotImplemented} {
		r, _, err := (&dns.Client{Net: "tcp", Timeout: clients.AskTime}).Exchange(update(zone), addr)
		if err != nil || r.Rcode != rcode {
			t.Errorf("%s: %v, %v", zone, r, err)
		}
	}
}
