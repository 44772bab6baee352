package secondary

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// running starts servers, and ends them with the test; the function returned puts others in their place.
func running(t *testing.T, corefile string) (restart func(corefile string)) {
	t.Helper()
	input := func(text string) caddy.Input {
		return caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(text), ServerTypeName: "dns"}
	}
	dnsserver.Quiet = true
	i, err := caddy.Start(input(corefile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); i.Stop() })
	return func(corefile string) {
		t.Helper()
		now, err := i.Restart(input(corefile))
		if err != nil {
			t.Fatal(err)
		}
		i = now
	}
}

// delayed is a way to a primary on which each answer takes a while.
func delayed(t *testing.T, addr string, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				client := &dns.Conn{Conn: c}
				q, err := client.ReadMsg()
				if err != nil {
					return
				}
				time.Sleep(delay)
				primary, err := dns.Dial("tcp", addr)
				if err != nil {
					return
				}
				defer primary.Close()
				primary.WriteMsg(q)
				if m, err := primary.ReadMsg(); err == nil { // small zones only
					client.WriteMsg(m)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestReloadToOtherPrimary: a zone whose primary is another one is answered for while it is fetched from there.
func TestReloadToOtherPrimary(t *testing.T) {
	logtest.Capture(t)
	first, second := newPrimary(t), newPrimary(t)
	first.set("example.org.", text(9, slow, "a A 192.0.2.1"))
	second.set("example.org.", text(3, slow, "a A 192.0.2.2")) // older, which is nothing that counts
	port := loopback.Port()
	corefile := fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nsecondary {\ntransfer from %%s\n}\n}\n", port)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	a := func() string {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA), addr)
		if err != nil {
			return err.Error()
		}
		if len(m.Answer) == 0 {
			return dns.RcodeToString[m.Rcode]
		}
		return m.Answer[0].(*dns.A).A.String()
	}
	restart := running(t, fmt.Sprintf(corefile, first.addr))
	eventually.Holds(t, "the zone", func() bool { return a() == "192.0.2.1" })
	restart(fmt.Sprintf(corefile, delayed(t, second.addr, 300*time.Millisecond)))
	if got := a(); got != "192.0.2.2" {
		t.Errorf("behind the reload: %s", got)
	}

	// One that takes longer than a reload waits. What there is is served until then.
	before := takeOverWait
	takeOverWait = 50 * time.Millisecond
	t.Cleanup(func() { takeOverWait = before })
	restart(fmt.Sprintf(corefile, delayed(t, first.addr, 500*time.Millisecond)))
	if got := a(); got != "192.0.2.2" {
		t.Errorf("behind a reload to a slow primary: %s", got)
	}
	eventually.Holds(t, "the slow primary's zone", func() bool {
		got := a()
		if got != "192.0.2.1" && got != "192.0.2.2" {
			t.Fatalf("meanwhile: %s", got)
		}
		return got == "192.0.2.1"
	})
}

// TestTakeOverOfProcess: a process that takes the place of another one waits until it has looked at the primaries, though
// something is stored: the other one may have a newer version.
func TestTakeOverOfProcess(t *testing.T) {
	z := newReplica("example.org.", new(source), nil)
	c := &crew{rosters: []*roster{{replicas: map[string]*replica{"example.org.": z}}}}
	parsed, err := file.Parse(strings.NewReader(text(1, slow)), "example.org.", "db", -1)
	if err != nil {
		t.Fatal(err)
	}
	if !c.lack(true, nil) || c.lack(false, nil) {
		t.Error("without data")
	}
	if err := z.serve(parsed.Current(), time.Now()); err != nil || !c.lack(true, nil) || c.lack(false, nil) {
		t.Errorf("with what is stored: %v", err)
	}
	if z.checked.Store(true); c.lack(true, nil) {
		t.Error("with what a primary has")
	}
}

// TestReloadToSilentPrimaries: zones whose primaries do not answer hold up a reload for one time only, and new ones not at all.
func TestReloadToSilentPrimaries(t *testing.T) {
	logtest.Capture(t)
	before := takeOverWait
	takeOverWait = time.Second
	t.Cleanup(func() { takeOverWait = before })
	p := newPrimary(t)
	port := loopback.Port()
	const blocks = 8
	var corefile strings.Builder
	for i := range blocks {
		name := fmt.Sprintf("z%d.example.", i)
		p.set(name, text(1, slow, "a A 192.0.2.1"))
		fmt.Fprintf(&corefile, "%s:%d {\nbind 127.0.0.1\nsecondary {\ntransfer from %s\n}\n}\n", name, port, p.addr)
	}
	restart := running(t, corefile.String())
	for i := range blocks {
		eventually.Holds(t, "a zone", func() bool {
			m, err := dns.Exchange(new(dns.Msg).SetQuestion(fmt.Sprintf("a.z%d.example.", i), dns.TypeA), fmt.Sprintf("127.0.0.1:%d", port))
			return err == nil && len(m.Answer) == 1
		})
	}
	fresh := fmt.Sprintf("fresh.example:%d {\nbind 127.0.0.1\nsecondary {\ntransfer from 127.0.0.1:1\n}\n}\n", port)
	begin := time.Now()
	restart(corefile.String() + fresh)
	if took := time.Since(begin); took >= takeOverWait {
		t.Errorf("a new zone held up the reload for %v", took)
	}
	begin = time.Now()
	restart(strings.ReplaceAll(corefile.String(), p.addr, "127.0.0.1:1"))
	if took := time.Since(begin); took < takeOverWait || took > blocks/2*takeOverWait {
		t.Errorf("the reload took %v", took)
	}
}
