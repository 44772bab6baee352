package test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// innermost asks for the state of the client's TLS connection, as the last plugin of a chain may, and answers.
type innermost struct{ seen *tls.ConnectionState }

func (i *innermost) Name() string { return "innermost" }

func (i *innermost) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if c, ok := w.(dns.ConnectionStater); ok {
		i.seen = c.ConnectionState()
	}
	m := new(dns.Msg).SetReply(r)
	rr, err := dns.NewRR("www.example.org. 60 IN A 192.0.2.1")
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	m.Answer = []dns.RR{rr}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

var nextInnermost *innermost

func init() {
	at := slices.Index(dnsserver.Directives, "erratic")
	dnsserver.Directives = slices.Insert(dnsserver.Directives, at, "innermost")
	plugin.Register("innermost", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return nextInnermost })
		return nil
	})
}

// What stands around the writer of a query over TLS hands its state on to the plugins further in.
func TestTLSState(t *testing.T) {
	dir := t.TempDir()
	certificates(t, dir)
	resolv := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("search example.org example.net\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]string{
		"none":        "",
		"autopath":    "autopath " + resolv,
		"cache":       "cache 30",
		"dns64":       "dns64",
		"dnstap":      "dnstap " + filepath.Join(dir, "none.sock") + " full",
		"errors":      "errors",
		"header":      "header {\nresponse set ra\n}",
		"loadbalance": "loadbalance",
		"log":         "log",
		"metadata":    "metadata",
		"minimal":     "minimal",
		"nsid":        "nsid here",
		"rewrite":     "rewrite name exact www.example.org www.example.org answer auto",
		"throttle":    "throttle {\nresponses 1000\n}",
		"tsig":        "tsig {\nsecret k. MTIzNDU2Nzg5MDEyMzQ1Ng==\n}",
		"foreign":     "foreign",
		"all":         "metadata\nerrors\nlog\nnsid here\nminimal\nheader {\nresponse set ra\n}\nloadbalance\ncache 30\nrewrite name exact www.example.org www.example.org answer auto",
	} {
		t.Run(name, func(t *testing.T) {
			nextForeign, nextInnermost = new(foreign), new(innermost)
			port := loopback.Port()
			start(t, fmt.Sprintf("tls://.:%d {\nbind 127.0.0.1\ntls %s/cert.pem %[2]s/key.pem\n%s\ninnermost\n}", port, dir, lines))
			r, err := clients.Connect(t, "tls", fmt.Sprintf("127.0.0.1:%d", port)).Ask(question("www.example.org.", dns.TypeA))
			if err != nil || len(r.Answer) != 1 {
				t.Fatal(err, r)
			}
			if s := nextInnermost.seen; s == nil || !s.HandshakeComplete {
				t.Errorf("the innermost plugin sees the state %v", s)
			}
		})
	}
}
