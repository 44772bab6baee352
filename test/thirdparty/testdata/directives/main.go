// Directives is a program with a server of its own: few plugins, one of them its own, in an order of its own.
package main

import (
	"context"
	"net"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/whoami"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() {
	plugin.Register("greeter", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return greeter{next} })
		return nil
	})
	dnsserver.Directives = []string{"bind", "whoami", "greeter", "forward"} // forward is not linked in
}

// greeter answers each query for TXT.
type greeter struct{ next plugin.Handler }

func (greeter) Name() string { return "greeter" }

func (g greeter) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	host, _, _ := net.SplitHostPort(w.RemoteAddr().String())
	m.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{"hello", host}}}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func main() {
	// A last change, when all is registered: the greeter comes before who would answer.
	dnsserver.Directives = append([]string{"greeter"}, "bind", "whoami", "forward")
	caddy.AppName, caddy.AppVersion = "Greeter", "7/"+coremain.CoreVersion
	coremain.Run()
}
