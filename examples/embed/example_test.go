package embed_test

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"net"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/template"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// corefile is a server that has one address for all names, at a port that the system chooses.
func corefile(address string) caddy.Input {
	return caddy.CaddyfileInput{
		ServerTypeName: "dns", Filepath: "Corefile", // the name stands in errors
		Contents: []byte(".:0 {\n bind 127.0.0.1\n errors\n template IN A . {\n answer \"{{ .Name }} 60 IN A " + address + "\"\n }\n}\n"),
	}
}

// start starts a server. The process says nothing of it.
func start(address string) *caddy.Instance {
	caddy.Quiet, dnsserver.Quiet = true, true
	stdlog.SetOutput(io.Discard)
	instance, err := caddy.Start(corefile(address))
	if err != nil {
		panic(err)
	}
	return instance
}

// stop ends a server: first what its plugins do at the end, then its sockets.
func stop(instance *caddy.Instance) {
	instance.ShutdownCallbacks()
	instance.Stop()
}

// ask prints what a server answers over UDP.
func ask(addr net.Addr) {
	m, err := dns.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), addr.String())
	if err != nil {
		fmt.Println("no reply")
		return
	}
	for _, rr := range m.Answer {
		fmt.Println(rr.(*dns.A).A)
	}
}

// A reload starts a second configuration, which takes over the sockets; if it is refused, the first goes on.
func Example() {
	instance := start("192.0.2.1")
	addr := instance.Servers()[0].LocalAddr()
	ask(addr)

	bad := caddy.CaddyfileInput{ServerTypeName: "dns", Filepath: "Corefile", Contents: []byte(".:0 {\n nonsense\n}\n")}
	if _, err := instance.Restart(bad); err != nil {
		fmt.Println("refused")
	}
	ask(addr)

	next, err := instance.Restart(corefile("192.0.2.2"))
	if err != nil {
		panic(err)
	}
	ask(addr)

	stop(next)
	next.Wait() // until all servers have ended
	ask(addr)
	// Output:
	// 192.0.2.1
	// refused
	// 192.0.2.1
	// 192.0.2.2
	// no reply
}

// greet is a plugin without a directive.
func greet(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 3)}}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// A server needs no Corefile: a Config has its chain. It serves any socket that the program has, over UDP by
// ServePacket and over TCP by Serve; both return when Stop was called.
func Example_ownListener() {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server, err := dnsserver.NewServer("dns://"+socket.LocalAddr().String(), []*dnsserver.Config{{
		Zone:   "example.org.",
		Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return plugin.HandlerFunc(greet) }},
	}})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- server.ServePacket(socket) }()
	ask(socket.LocalAddr())
	if err := server.Stop(); err != nil {
		fmt.Println(err)
	}
	<-done
	// Output: 192.0.2.3
}

// logger is told the lines of plugins. To be told all levels it would have the other methods, too; log.Listener has the list.
type logger struct{ log.Listener }

func (logger) Name() string { return "example" }

func (logger) Warningf(plugin, format string, v ...any) {
	fmt.Print("program: ", plugin, fmt.Sprintf(format, v...), "\n")
}

// Lines of plugins go to listeners, and to Go's log, which a program redirects or throws away.
func Example_ownLogger() {
	stdlog.SetOutput(io.Discard)
	if err := log.RegisterListener(logger{}); err != nil {
		panic(err)
	}
	defer log.DeregisterListener(logger{})
	log.NewWithPlugin("greeter").Warningf("%d guests are late", 2)
	// Output: program: plugin/greeter: 2 guests are late
}

// Each server has its own configuration, sockets and end.
func Example_strangers() {
	one, two := start("192.0.2.1"), start("192.0.2.2")
	first, second := one.Servers()[0].LocalAddr(), two.Servers()[0].LocalAddr()
	ask(first)
	ask(second)
	next, err := one.Restart(corefile("192.0.2.9"))
	if err != nil {
		panic(err)
	}
	ask(first)
	ask(second)
	stop(next)
	ask(first)
	ask(second)
	stop(two)
	// Output:
	// 192.0.2.1
	// 192.0.2.2
	// 192.0.2.9
	// 192.0.2.2
	// no reply
	// 192.0.2.2
}
