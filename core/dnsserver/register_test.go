package dnsserver

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// Each name goes to its block, each query to its view.
func TestBlocksOfACorefile(t *testing.T) {
	probed(t)
	i := started(t, `example.org:0 {
	probe mx view MX
}
example.org:0 sub.example.org:0 10.0.0.0/24:0 {
	probe org
}
net:0 {
	probe net
}`)
	if n := len(i.Servers()); n != 1 {
		t.Fatalf("%d servers", n)
	}
	udp := i.Servers()[0].LocalAddr()
	for name, want := range map[string]string{
		"example.org.": "org", "www.SUB.example.org.": "org", "1.0.0.10.in-addr.arpa.": "org", "www.net.": "net", "www.test.": "REFUSED",
	} {
		if got := text(t, "udp", udp, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"example.org.": "mx", "sub.example.org.": "org", "net.": "net"} {
		c := &dns.Client{Timeout: clients.AskTime}
		r, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeMX), udp.String())
		if got := textIn(r, err); got != want {
			t.Errorf("MX of %s: got %s, want %s", name, got, want)
		}
	}
}

// Setup functions get the Config of their block, and can reach all others.
func TestSetupFunctions(t *testing.T) {
	probed(t)
	var configs, all []*Config
	var instance *caddy.Instance
	var stanzas []string
	var labels [][]string
	probing.setup = func(c *caddy.Controller) {
		cfg := GetConfig(c)
		cfg.ListenHosts = []string{"127.0.0.1", "127.0.0.2"}
		cfg.Root = "/somewhere"
		cfg.TLSConfig = new(tls.Config)
		configs, all = append(configs, cfg), c.Context().(*dnsContext).configs
		instance = Instance(c)
		stanzas = append(stanzas, Stanza(c, "probe")+Stanza(c, "other"))
		labels = append(labels, Labels(c.ServerBlockKeys, cfg))
		AddPluginToAllServerBlocks(c, func(next plugin.Handler) plugin.Handler { return handler{"added", nil} })
	}
	i := started(t, "a.example:0 b.example:0 {\nprobe one\n}\nc.example:0 {\nprobe 'two two'\n}")
	if instance != i || len(configs) != 2 {
		t.Fatalf("instance %p, want %p; %d configs", instance, i, len(configs))
	}
	if got := strings.Join(stanzas, "; "); got != `"probe" "one"; "probe" "'two" "two'"` {
		t.Errorf("stanzas %s", got)
	}
	if want := []string{"dns://127.0.0.1:0", "dns://127.0.0.2:0"}; !slices.Equal(labels[0], want) || !slices.Equal(labels[1], want) {
		t.Errorf("labels %v", labels)
	}
	for n, cfg := range configs {
		if names := namesOf(cfg.Chain()); names != []string{"added probe added", "added added probe"}[n] || cfg.Handler("probe") == nil || cfg.Handler("none") != nil {
			t.Errorf("block %d: chain %s", n, names)
		}
		if names := namesOf(cfg.Handlers()); names != "probe" {
			t.Errorf("block %d: handlers in the order of directives: %s", n, names)
		}
	}
	if n := len(i.Servers()); n != 2 || len(all) != 3 {
		t.Fatalf("%d servers, %d configs", n, len(all))
	}
	b := all[1]
	if b.Zone != "b.example." || b.Root != "/somewhere" || b.TLSConfig == configs[0].TLSConfig || b.Port != "0" || namesOf(b.Chain()) != namesOf(configs[0].Chain()) {
		t.Errorf("the block's second key has %+v", b)
	}
}

func namesOf(handlers []plugin.Handler) string {
	var names []string
	for _, h := range handlers {
		names = append(names, h.Name())
	}
	return strings.Join(names, " ")
}

// Outside of a server block there is a Config, too.
func TestGetConfigWithoutBlock(t *testing.T) {
	c := caddy.NewTestController("dns", "")
	cfg := GetConfig(c)
	if cfg == nil || cfg != GetConfig(c) || !slices.Equal(cfg.ListenHosts, []string{""}) {
		t.Errorf("got %+v", cfg)
	}
	cfg.AddPlugin(func(plugin.Handler) plugin.Handler { return echo })
	if len(cfg.Plugin) != 1 || Stanza(c, "probe") != "" {
		t.Errorf("got %+v", cfg)
	}
}

// What cannot be served is told when the configuration is validated, and then nothing is listened on and no hook is
// called.
func TestValidate(t *testing.T) {
	probed(t)
	for _, tc := range []struct{ corefile, want string }{
		{".:0 {\nprobe one\n}", ""},
		{"a.example:0 {\nprobe one fails\n}\nb.example:0 {\nprobe two\n}", ""},
		{"example.org:0 {\nprobe mx view MX\n}\nexample.org:0 {\nprobe rest\n}", ""},
		{"example.org:0 {\nprobe one\n}\nexample.org:0 {\nprobe two\n}", "already defined"},
		{".:0 {\nprobe one bad\n}", "as asked"},
		{".:0 {\nprobe\n}", "Wrong argument count"},
		{".:0 {\nnobody\n}", "Unknown directive 'nobody'"},
		{"foo://.:0 {\nprobe one\n}", "unknown scheme"},
		{".:99999 {\nprobe one\n}", "99999"},
		{"https3://.:0 {\nprobe one\n}", "TLS"},
		{"quic://.:0 {\nprobe one\n}", "ListenPacket: quic: tls.Config not set"},
		{"}", "unexpected '}'"},
	} {
		err := Validate(inputOf(tc.corefile))
		if errors.Is(err, errLeftOut) {
			continue
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v", tc.corefile, err)
		}
		if got := noted(); got != "" {
			t.Errorf("%q: %s", tc.corefile, got)
		}
	}
	if d := newContext(new(caddy.Instance)).(*dnsContext); capture.last == d {
		t.Error("contexts are still captured")
	}
}

func TestNothingToListenOn(t *testing.T) {
	if _, err := newContext(new(caddy.Instance)).MakeServers(); err == nil || !strings.Contains(err.Error(), "no listeners configured") {
		t.Errorf("got %v", err)
	}
}

// A block cannot be two views.
func TestTwoViewsOfABlock(t *testing.T) {
	probed(t)
	d := newContext(new(caddy.Instance)).(*dnsContext)
	c := &Config{Zone: ".", Port: "0", Transport: "dns", ListenHosts: []string{""}, ViewName: "another"}
	c.first = c
	c.AddPlugin(func(plugin.Handler) plugin.Handler { return &viewProbe{&probe{text: "one"}} })
	d.add(keyPos{0, 0}, c)
	if _, err := d.MakeServers(); err == nil || !strings.Contains(err.Error(), "multiple views") {
		t.Errorf("got %v", err)
	}
}

// Several sockets of an address are several servers, of which one lists the zones.
func TestSeveralSockets(t *testing.T) {
	probed(t)
	probing.setup = func(c *caddy.Controller) { GetConfig(c).NumSockets = 3 }
	i := started(t, ".:0 {\nprobe one\n}")
	if n := len(i.Servers()); n != 3 {
		t.Fatalf("%d servers", n)
	}
	for _, l := range i.Servers() {
		if got := text(t, "udp", l.LocalAddr(), "www."); got != "one" {
			t.Errorf("%v: %s", l.LocalAddr(), got)
		}
	}
	d := newContext(new(caddy.Instance)).(*dnsContext)
	c := block1(".", echo)
	c.first, c.NumSockets = c, 3
	d.add(keyPos{0, 0}, c)
	servers, err := d.MakeServers()
	if err != nil || len(servers) != 3 {
		t.Fatalf("%d servers, %v", len(servers), err)
	}
	for n, s := range servers {
		if s.(*Server).nth != n {
			t.Errorf("server %d: it is number %d", n, s.(*Server).nth)
		}
	}
}

// Who says how many sockets an address has, has so many, one as well; who says nothing has one for each core.
func TestExtraSockets(t *testing.T) {
	for sockets, want := range map[int]bool{0: true, 1: false, 2: false} {
		c := block1(".", echo)
		c.Transport, c.NumSockets = "dns", sockets
		s := &Server{configs: []*Config{c}}
		if got := s.hasExtraSockets(); got != want || s.oneSocket() == want {
			t.Errorf("NumSockets %d: extra sockets %t, want %t; one socket %t", sockets, got, want, s.oneSocket())
		}
	}
}
