package dnsserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/coredns/coredns/core/internal/caddystate"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// pending sends a query that the probe holds back on a connection of its own. What it returns reads the reply.
func pending(t *testing.T, network string, addr net.Addr, name string) (c *dns.Conn, reply func() string) {
	t.Helper()
	if network == "udp" {
		c = &dns.Conn{Conn: dialUDP(t, addr.String())}
	} else {
		c = &dns.Conn{Conn: dial(t, addr.String())}
	}
	if err := c.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeTXT)); err != nil {
		t.Fatal(err)
	}
	return c, func() string { return textIn(c.ReadMsg()) }
}

// A reload that comes right after the start waits until all servers have what the next ones take over from them.
func TestReloadRightAfterTheStart(t *testing.T) {
	probed(t)
	first := true
	probing.setup = func(c *caddy.Controller) {
		if first {
			first = false
			GetConfig(c).UDPDecorateWriterFunc = func(*Server) dns.DecorateWriter { // called before the server has its transport
				<-probing.gate.opened
				return nil
			}
		}
	}
	i := started(t, ".:0 {\nprobe one\n}")
	udp := i.Servers()[0].LocalAddr()
	reloaded := make(chan error, 1)
	go func() {
		_, err := i.Restart(inputOf(".:0 {\nprobe two\n}"))
		reloaded <- err
	}()
	time.Sleep(50 * time.Millisecond) // it has the chance to go wrong
	if len(reloaded) > 0 {
		t.Error("the reload was over before the start")
	}
	probing.gate.open()
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	if got := text(t, "udp", udp, "www."); got != "two" {
		t.Errorf("got %s", got)
	}
}

// Plugins may register their shutdown functions when they start: these are called like those of others, when no
// query needs them any more.
func TestLateShutdown(t *testing.T) {
	for what, end := range map[string]func(*caddy.Instance){
		"reload": func(i *caddy.Instance) { i.Restart(inputOf(".:0 {\nprobe two\n}")) },
		"end":    func(i *caddy.Instance) { i.ShutdownCallbacks() },
	} {
		t.Run(what, func(t *testing.T) {
			probed(t)
			i := started(t, ".:0 {\nprobe one late\n}")
			_, reply := pending(t, "udp", i.Servers()[0].LocalAddr(), "slow.")
			probing.gate.holds(t, 1)
			over := make(chan struct{})
			go func() { end(i); close(over) }()
			expectNoted(t, map[string]string{"reload": "one starts, two starts", "end": "one starts, one is told of the end"}[what])
			time.Sleep(50 * time.Millisecond) // it has the chance to go wrong
			if got := noted(); got != "" {
				t.Errorf("with a query under way: %s", got)
			}
			probing.gate.open()
			if got := reply(); got != "one" {
				t.Errorf("what was under way got %s", got)
			}
			<-over
			expectNoted(t, "one ends")
		})
	}
}

// A reload in which the end of the configuration before fails has not failed: the new one serves, is told of, and can end.
func TestReplacedEndsBadly(t *testing.T) {
	for how, want := range map[string]string{"ill": "as asked at the end", "panics": "panic: as asked at the end"} {
		t.Run(how, func(t *testing.T) {
			probed(t)
			out := logtest.Capture(t)
			i := started(t, ".:0 {\nprobe one "+how+"\n}\nexample.org:0 {\nprobe beside\n}")
			told := make(chan *caddy.Instance, 1)
			caddy.RegisterEventHook("told", func(e caddy.EventName, info any) error {
				if e == caddy.InstanceStartupEvent {
					told <- info.(*caddy.Instance)
				}
				return nil
			})
			t.Cleanup(func() { caddystate.EventHooks.Delete("told") })
			next, err := i.Restart(inputOf(".:0 {\nprobe two\n}"))
			if err != nil || next == nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := text(t, "udp", next.Servers()[0].LocalAddr(), "www."); got != "two" {
				t.Errorf("got %s", got)
			}
			select {
			case who := <-told:
				if who != next {
					t.Error("another one is told of")
				}
			default:
				t.Error("nobody is told of the new configuration")
			}
			expectNoted(t, "one starts, beside starts, two starts, one ends, beside ends")
			if want := "Shutting down a configuration that was replaced: " + want; strings.Count(out.String(), want) != 1 {
				t.Errorf("logged %s", out)
			}
			if errs := next.ShutdownCallbacks(); len(errs) > 0 {
				t.Error(errs)
			}
			expectNoted(t, "two is told of the end, two ends")
		})
	}
}

// A plugin that does not come to its end holds up neither others, nor the next reload, nor the end of the process.
func TestPluginDoesNotEnd(t *testing.T) {
	usual := endTime
	endTime = 50 * time.Millisecond
	t.Cleanup(func() { endTime = usual })
	probed(t)
	out := logtest.Capture(t)
	i := started(t, ".:0 {\nprobe one hangs\n}\nexample.org:0 {\nprobe beside\n}")
	defer probing.gate.open()
	over := make(chan []error, 1)
	go func() {
		for _, text := range []string{"two", "three hangs"} {
			next, err := i.Restart(inputOf(".:0 {\nprobe " + text + "\n}\n"))
			if err != nil {
				over <- []error{err}
				return
			}
			i = next
		}
		over <- i.ShutdownCallbacks()
	}()
	select {
	case errs := <-over:
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "dnsserver.setupProbe.func") || !strings.Contains(errs[0].Error(), "has not come to its end within 50ms") {
			t.Errorf("the end: %v", errs)
		}
	case <-time.After(20 * time.Second):
		t.Error("they are waited for")
	}
	expectNoted(t, "one starts, beside starts, two starts, one ends, beside ends, three starts, two ends, three is told of the end, three ends")
	if want := "Shutting down a configuration that was replaced: dnsserver.setupProbe.func"; strings.Count(out.String(), want) != 1 {
		t.Errorf("logged %s", out)
	}
}

// Of what OnEnd was given, too, one that does not come to its end, or panics, holds up no other.
func TestEndOfSetupDoesNotEnd(t *testing.T) {
	usual := endTime
	endTime = 50 * time.Millisecond
	t.Cleanup(func() { endTime = usual })
	probed(t)
	gate := probing.gate
	defer gate.open()
	probing.setup = func(c *caddy.Controller) {
		OnEnd(c, func() error { note("first"); return nil })
		OnEnd(c, func() error { panic("as asked") })
		OnEnd(c, func() error { <-gate.opened; return nil })
	}
	defer func() { probing.setup = nil }()
	i := started(t, ".:0 {\nprobe one\n}")
	over := make(chan []error, 1)
	go func() { over <- i.ShutdownCallbacks() }()
	select {
	case errs := <-over:
		if got := fmt.Sprint(errs); !strings.Contains(got, "dnsserver.TestEndOfSetupDoesNotEnd.func") || !strings.Contains(got, "panic: as asked") {
			t.Errorf("the end: %s", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("they are waited for")
	}
	expectNoted(t, "one starts, one is told of the end, one ends, first")
}

// In a reload no query is lost: those under way are answered by the old configuration, whose plugins end after them;
// further ones, also on connections that were open, by the new one.
func TestReload(t *testing.T) {
	probed(t)
	old := started(t, ".:0 {\nprobe one\n}")
	if got := noted(); got != "one starts" {
		t.Errorf("at the start: %s", got)
	}
	tcp, udp := old.Servers()[0].Addr(), old.Servers()[0].LocalAddr()
	conn, onTCP := pending(t, "tcp", tcp, "slow.")
	_, onUDP := pending(t, "udp", udp, "slow.")
	probing.gate.holds(t, 2)

	next, err := old.Restart(inputOf(".:0 {\nprobe two\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := noted(); got != "two starts" {
		t.Errorf("in the reload: %s", got)
	}
	if s := next.Servers()[0]; s.Addr().String() != tcp.String() || s.LocalAddr().String() != udp.String() {
		t.Errorf("listening at %v and %v", s.Addr(), s.LocalAddr())
	}
	for network, addr := range map[string]net.Addr{"tcp": tcp, "udp": udp} {
		if got := text(t, network, addr, "www."); got != "two" {
			t.Errorf("%s: got %s", network, got)
		}
	}
	if err := conn.WriteMsg(new(dns.Msg).SetQuestion("www.", dns.TypeTXT)); err != nil {
		t.Fatal(err)
	}
	if got := onTCP(); got != "two" {
		t.Errorf("on a connection that was open: %s", got)
	}
	probing.gate.open()
	for network, reply := range map[string]func() string{"tcp": onTCP, "udp": onUDP} {
		if got := reply(); got != "one" {
			t.Errorf("%s: what was under way got %s", network, got)
		}
	}
	expectNoted(t, "one ends")
	conn.WriteMsg(new(dns.Msg).SetQuestion("again.", dns.TypeTXT))
	if got := onTCP(); got != "two" {
		t.Errorf("afterwards: %s", got)
	}
}

// A reload waits for the end of the one before.
func TestReloads(t *testing.T) {
	probed(t)
	i := started(t, ".:0 {\nprobe zero\n}")
	tcp, udp := i.Servers()[0].Addr(), i.Servers()[0].LocalAddr()
	conn := &dns.Conn{Conn: dial(t, tcp.String())}
	for _, name := range []string{"one", "two", "three"} {
		next, err := i.Restart(inputOf(".:0 {\nprobe " + name + "\n}"))
		if err != nil {
			t.Fatal(err)
		}
		i = next
		conn.WriteMsg(new(dns.Msg).SetQuestion("www.", dns.TypeTXT))
		if got := textIn(conn.ReadMsg()); got != name {
			t.Errorf("over TCP: %s, want %s", got, name)
		}
		if got := text(t, "udp", udp, "www."); got != name {
			t.Errorf("over UDP: %s, want %s", got, name)
		}
	}
	expectNoted(t, "zero starts, one starts, zero ends, two starts, one ends, three starts, two ends")
}

// There are never more than two configurations at work: the next reload waits for queries of the one before the last.
func TestReloadWaitsForTheOneBefore(t *testing.T) {
	probed(t)
	old := started(t, ".:0 {\nprobe one\n}")
	_, reply := pending(t, "udp", old.Servers()[0].LocalAddr(), "slow.")
	probing.gate.holds(t, 1)
	next, err := old.Restart(inputOf(".:0 {\nprobe two\n}"))
	if err != nil {
		t.Fatal(err)
	}
	expectNoted(t, "one starts, two starts")
	reloaded := make(chan error, 1)
	go func() {
		_, err := next.Restart(inputOf(".:0 {\nprobe three\n}"))
		reloaded <- err
	}()
	time.Sleep(50 * time.Millisecond) // it has the chance to go wrong
	if got := noted(); got != "" {
		t.Errorf("with a query under way: %s", got)
	}
	probing.gate.open()
	if got := reply(); got != "one" {
		t.Errorf("what was under way got %s", got)
	}
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	expectNoted(t, "one ends, three starts, two ends")
}

// When a reload fails, the old configuration goes on, and what the new one has begun is ended.
func TestReloadFails(t *testing.T) {
	probed(t)
	port := loopback.Taken(t)
	old := started(t, ".:0 {\nprobe one\n}")
	noted()
	for _, tc := range []struct{ name, corefile, want string }{
		{"setup", ".:0 {\nprobe two bad\n}", ""},
		{"startup function", ".:0 {\nprobe two fails\n}", "two starts"},
		{"listener", ".:0 {\nprobe two\n}\n.:" + port + " {\nprobe three\n}", "two starts, three starts, two ends, three ends"},
		{"startup function behind others", ".:0 {\nprobe two late\n}\n.:1 {\nprobe three\n}\n.:2 {\nprobe four fails\n}", "two starts, three starts, four starts, two ends"},
		{"listener, late", ".:0 {\nprobe two late\n}\n.:" + port + " {\nprobe three\n}", "two starts, three starts, three ends, two ends"},
	} {
		i, err := old.Restart(inputOf(tc.corefile))
		if err == nil || i != old {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if got := noted(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		for network, addr := range map[string]net.Addr{"tcp": old.Servers()[0].Addr(), "udp": old.Servers()[0].LocalAddr()} {
			if got := text(t, network, addr, "www."); got != "one" {
				t.Errorf("%s, %s: %s", tc.name, network, got)
			}
		}
	}
	next, err := old.Restart(inputOf(".:0 {\nprobe good\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, "udp", next.Servers()[0].LocalAddr(), "www."); got != "good" {
		t.Errorf("the next one: %s", got)
	}
	expectNoted(t, "good starts, one ends")
}

// When the first start fails, what it has begun is ended, and its sockets take no queries of the one that is started instead:
// a program that embeds the server goes on.
func TestFirstStartFails(t *testing.T) {
	probed(t)
	Directives = append(Directives, "unfit")
	probing.setup = func(c *caddy.Controller) { OnEnd(c, func() error { note("end"); return nil }) }
	defer func() { probing.setup = nil }()
	port := loopback.Taken(t)
	free := loopback.Addr()
	_, good, _ := net.SplitHostPort(free)
	for _, tc := range []struct{ name, corefile, want string }{
		{"setup", ".:" + good + " {\nprobe one\nunfit\n}", "end"},
		{"servers", ".:" + good + " {\nprobe one\n}\n.:" + good + " {\nprobe two\n}", "end, end"},
		{"startup function", ".:" + good + " {\nprobe one\n}\n.:0 {\nprobe two fails\n}", "one starts, two starts, end, end"},
		{"startup function behind others", ".:" + good + " {\nprobe one late\n}\n.:1 {\nprobe two fails\n}", "one starts, two starts, one ends, end, end"},
		{"listener", ".:" + good + " {\nprobe one\n}\n.:" + port + " {\nprobe two\n}", "one starts, two starts, one ends, two ends, end, end"},
		{"without a certificate", ".:" + good + " {\nprobe one late\n}\nquic://.:0 {\nprobe two\n}", "end, end"},
	} {
		failed, err := caddy.Start(inputOf(tc.corefile))
		if err == nil {
			t.Fatal(tc.name)
		}
		if got := noted(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		expectFree(t, tc.name, free)
		runtime.KeepAlive(failed) // else what it has opened could be closed as garbage
	}
	i := started(t, ".:"+good+" {\nprobe good\n}")
	if got := text(t, "udp", i.Servers()[0].LocalAddr(), "www."); got != "good" {
		t.Errorf("the next one: %s", got)
	}
}

// Instances of one process are restarted at one time. Each takes the place of its own, and of no other.
func TestReloadsBesideOthers(t *testing.T) {
	probed(t)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		i := started(t, ".:0 {\nprobe "+name+"\n}")
		all.Go(func() {
			addr := i.Servers()[0].LocalAddr()
			for k := range 20 {
				want := fmt.Sprint(name, k)
				next, err := i.Restart(inputOf(".:0 {\nprobe " + want + "\n}"))
				if err != nil {
					t.Error(err)
					return
				}
				i = next
				if got := text(t, "udp", addr, "www."); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	all.Wait()
}

// lastGeneration is that of the configuration which is set up last.
func lastGeneration() func() *generation {
	var last *dnsContext
	probing.setup = func(c *caddy.Controller) { last = c.Context().(*dnsContext) }
	return func() *generation { return last.servers[0].base().generation }
}

// TestStopsThatTakeLong has a reload on a machine so busy that not one server has come to stop when the time that a reload
// waits for that is over. The configuration ends all the same, or the next reload would wait for that for ever.
func TestStopsThatTakeLong(t *testing.T) {
	probed(t)
	last := lastGeneration()
	started(t, ".:0 {\nprobe one\n}")
	g := last()
	noted()
	for _, s := range g.servers { // as Stop does before all else
		s.telling.Do(func() { close(s.told) })
	}
	if err := g.shutdown(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.ended:
	case <-time.After(5 * time.Second):
		t.Fatal("it has not ended")
	}
	expectNoted(t, "one ends")
}

// Who holds a configuration of long ago holds none of those that came after it.
func TestOldConfigurationsAreLetGo(t *testing.T) {
	probed(t)
	last := lastGeneration()
	i := started(t, ".:0 {\nprobe 0\n}")
	first := last()
	var gone []weak.Pointer[generation]
	for n := range 4 {
		next, err := i.Restart(inputOf(fmt.Sprintf(".:0 {\nprobe %d\n}", n+1)))
		if err != nil {
			t.Fatal(err)
		}
		i = next
		gone = append(gone, weak.Make(last()))
	}
	eventually.Holds(t, "they are let go", func() bool {
		runtime.GC()
		return gone[0].Value() == nil && gone[1].Value() == nil
	})
	if !first.isReplaced() || gone[3].Value() != last() {
		t.Error("the first one is not replaced, or the last one is not there")
	}
	if _, err := first.instance.Restart(inputOf(".:0 {\nprobe again\n}")); !errors.Is(err, ErrReplaced) {
		t.Errorf("it is replaced once more: %v", err)
	}
}

// At the end plugins are told first and ended last: queries under way still need them.
func TestFinalShutdown(t *testing.T) {
	probed(t)
	i := started(t, ".:0 {\nprobe one\n}")
	noted()
	tcp, udp := i.Servers()[0].Addr(), i.Servers()[0].LocalAddr()
	_, onTCP := pending(t, "tcp", tcp, "slow.")
	_, onUDP := pending(t, "udp", udp, "slow.")
	probing.gate.holds(t, 2)
	over := make(chan []error, 1)
	go func() { over <- i.ShutdownCallbacks() }()
	eventually.Holds(t, "nobody listens", func() bool {
		c, err := net.Dial("tcp", tcp.String())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if got := noted(); got != "one is told of the end" || len(over) > 0 {
		t.Errorf("with queries under way: %s, over: %d", got, len(over))
	}
	probing.gate.open()
	for network, reply := range map[string]func() string{"tcp": onTCP, "udp": onUDP} {
		if got := reply(); got != "one" {
			t.Errorf("%s: %s", network, got)
		}
	}
	if errs := <-over; len(errs) > 0 {
		t.Error(errs)
	}
	if got := noted(); got != "one ends" {
		t.Errorf("at the end: %s", got)
	}
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	i.Wait()
}

// What plugins have to end begins to end at one time, before any of them is waited for: in a reload, at the end of the
// process, and when the start fails.
func TestEndsBeginTogether(t *testing.T) {
	probed(t)
	Directives = append(Directives, "unfit")
	probing.setup = func(c *caddy.Controller) {
		OnEnd(c, func() error { note("end"); return nil })
		OnEnding(c, func() { note("ending") })
	}
	defer func() { probing.setup = nil }()
	old := started(t, ".:0 {\nprobe one\n}\nexample.org:0 {\nprobe two\n}")
	noted()
	next, err := old.Restart(inputOf(".:0 {\nprobe three\n}\nexample.org:0 {\nprobe four\n}"))
	if err != nil {
		t.Fatal(err)
	}
	expectNoted(t, "three starts, four starts, ending, ending, one ends, two ends, end, end")
	next.ShutdownCallbacks()
	expectNoted(t, "three is told of the end, four is told of the end, ending, ending, three ends, four ends, end, end")
	if _, err := caddy.Start(inputOf(".:0 {\nprobe five\nunfit\n}")); err == nil {
		t.Fatal("it started")
	}
	expectNoted(t, "ending, end")
}

// TestReloadOfOtherKind changes what clients have to tell of themselves: connections of before are not taken over, as
// nobody knows whether their clients would be let in.
func TestReloadOfOtherKind(t *testing.T) {
	probed(t)
	ask := func(c net.Conn) string {
		conn := &dns.Conn{Conn: c}
		conn.WriteMsg(new(dns.Msg).SetQuestion("www.", dns.TypeTXT))
		return textIn(conn.ReadMsg())
	}
	own := certificate(t).Clone()
	own.ClientAuth = tls.RequestClientCert
	probing.setup = func(c *caddy.Controller) { GetConfig(c).TLSConfig = own }
	old := started(t, "tls://.:0 {\nprobe one\n}")
	dialTLS := func(i *caddy.Instance) net.Conn {
		return tls.Client(dial(t, i.Servers()[0].Addr().String()), clients.Trusting)
	}
	conn := dialTLS(old)
	if got := ask(conn); got != "one" {
		t.Fatal(got)
	}
	next, err := old.Restart(inputOf("tls://.:0 {\nprobe two\n}"))
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the old connection ends", func() bool {
		got := ask(conn)
		if got == "two" {
			t.Error("the old connection is served by the new configuration")
		}
		return got != "one" // which answers for a moment yet
	})
	if got := ask(dialTLS(next)); got != "two" {
		t.Errorf("a new connection: %s", got)
	}
	expectNoted(t, "one starts, two starts, one ends")
}
