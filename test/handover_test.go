//go:build unix

package test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// figure is a number of this test: few, or what the environment says, as for the long run of make soak.
func figure(name string, few int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return few
}

// counted is what became of the queries of one kind.
type counted struct {
	asked, again, lost atomic.Int64 // again: asked once more, as the connection was closed before the reply
	mu                 sync.Mutex
	errs               map[string]int // of those that were lost
}

func (c *counted) lose(err error) {
	c.lost.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errs == nil {
		c.errs = map[string]int{}
	}
	c.errs[err.Error()]++
}

// traffic asks servers all the time, at a rate for each kind.
type traffic struct {
	dir   string
	ports map[string]int
	stop  chan struct{}
	wg    sync.WaitGroup
	kinds map[string]*counted
}

const corefileOfHandover = `%[1]s{
	bind 127.0.0.1
	%[3]s
	tls %[2]s/cert.pem %[2]s/key.pem
	health 127.0.0.1:0 {
		lameduck 50ms
	}
	template IN A {
		answer "{{ .Name }} 1 IN A 192.0.2.1"
	}
}
`

func newTraffic(t *testing.T, more string) *traffic {
	l := &traffic{dir: t.TempDir(), ports: map[string]int{}, stop: make(chan struct{}), kinds: map[string]*counted{}}
	certificates(t, l.dir)
	keys := ""
	for _, scheme := range []string{"dns", "tls", "https"} {
		l.ports[scheme] = loopback.Port()
		keys += fmt.Sprintf("%s://.:%d ", scheme, l.ports[scheme])
	}
	text := fmt.Sprintf(corefileOfHandover, keys, l.dir, more)
	if err := os.WriteFile(filepath.Join(l.dir, "Corefile"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// begin asks with so many clients of a kind, rate queries a second together. ask is called with the number of a query.
func (l *traffic) begin(kind string, n, rate int, client func() (ask func(n int) error)) {
	c := new(counted)
	l.kinds[kind] = c
	pause := time.Second * time.Duration(n) / time.Duration(rate)
	for i := range n {
		l.wg.Go(func() {
			ask := client()
			next := time.Now().Add(pause * time.Duration(i) / time.Duration(n))
			for k := 0; ; k++ {
				next = next.Add(pause)
				select {
				case <-l.stop:
					return
				case <-time.After(time.Until(next)):
				}
				c.asked.Add(1)
				err := ask(k)
				// Closed in order: the client knows that it has no answer (RFC 7766 §6.2.4). On a busy machine the next connection
				// may come to who is to go, several times.
				for tries := 0; errors.Is(err, io.EOF) && tries < 20; tries++ {
					c.again.Add(1)
					time.Sleep(time.Duration(tries) * 10 * time.Millisecond)
					err = ask(k)
				}
				if err != nil {
					c.lose(err)
				}
				if late := time.Since(next); late > time.Second {
					next = next.Add(late) // it is not made up for
				}
			}
		})
	}
}

func (l *traffic) end(t *testing.T) {
	t.Helper()
	for kind, c := range l.kinds {
		eventually.Holds(t, kind+" queries", func() bool { return c.asked.Load() >= 10 })
	}
	close(l.stop)
	l.wg.Wait()
	for kind, c := range l.kinds {
		t.Logf("%s: %d queries, %d asked again", kind, c.asked.Load(), c.again.Load())
		if c.lost.Load() > 0 {
			t.Errorf("%s: %d lost: %v", kind, c.lost.Load(), c.errs)
		}
	}
}

// stream is a client of DNS over TCP or TLS with one question at a time. It connects when it has to.
func (l *traffic) stream(scheme string, conf *tls.Config) func() func(int) error {
	return func() func(int) error {
		var c *clients.FrameClient
		return func(n int) (err error) {
			if c == nil || c.Closed() {
				if c != nil {
					c.Close()
				}
				if c, err = clients.NewFrames(fmt.Sprintf("127.0.0.1:%d", l.ports[scheme]), conf); err != nil {
					return err
				}
			}
			return l.ask(c, n)
		}
	}
}

// ask asks for a name of its own.
func (l *traffic) ask(c clients.Client, n int) error {
	r, err := c.Ask(question(fmt.Sprintf("q%d.example.org.", n), dns.TypeA))
	if err == nil && len(r.Answer) != 1 {
		return fmt.Errorf("got %s", dns.RcodeToString[r.Rcode])
	}
	return err
}

func (l *traffic) udp() func(int) error {
	c := clients.UDPClient{Addr: fmt.Sprintf("127.0.0.1:%d", l.ports["dns"])}
	return func(n int) error { return l.ask(c, n) }
}

func (l *traffic) https(t *testing.T) func() func(int) error {
	return func() func(int) error {
		c := clients.Connect(t, "https/2", fmt.Sprintf("127.0.0.1:%d", l.ports["https"]))
		return func(n int) error { return l.ask(c, n) }
	}
}

func (l *traffic) beginAll(t *testing.T) {
	rate := figure("RATE", 500)
	l.begin("udp", 8, rate, l.udp)
	l.begin("tcp", 8, rate/10, l.stream("dns", nil))
	l.begin("dot", 8, rate/10, l.stream("tls", &tls.Config{InsecureSkipVerify: true}))
	l.begin("doh", 4, rate/10, l.https(t))
	time.Sleep(100 * time.Millisecond)
}

// A program that is ended while another one listens at its addresses loses nothing.
func TestHandOverToSuccessor(t *testing.T) {
	l := newTraffic(t, "")
	p := runProgram(t, l.dir)
	l.beginAll(t)
	for range figure("HANDOVERS", 4) {
		next := runProgram(t, l.dir)
		p.terminate(t)
		p = next
		time.Sleep(50 * time.Millisecond)
	}
	l.end(t)
	p.terminate(t)
}

// A program that begins another one in its place loses nothing, also with several sockets at an address.
func TestUpgrade(t *testing.T) {
	for _, sockets := range []string{"", "multisocket 3"} {
		t.Run(fmt.Sprintf("with %.11s", sockets), func(t *testing.T) {
			l := newTraffic(t, sockets)
			p := runProgram(t, l.dir)
			l.beginAll(t)
			for range figure("HANDOVERS", 4) {
				p = p.upgrade(t)
				time.Sleep(50 * time.Millisecond)
			}
			l.end(t)
			p.terminate(t)
		})
	}
}

// A program that begins another one in its place loses nothing, also if that has fewer processors, or more, and so would have
// another number of sockets. They become fewer by a reload.
func TestUpgradeWithOtherProcessors(t *testing.T) {
	l := newTraffic(t, "multisocket")
	has := func(n int) {
		if err := os.WriteFile(filepath.Join(l.dir, processors), []byte(strconv.Itoa(n)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has(4)
	p := runProgram(t, l.dir)
	l.beginAll(t)
	for _, n := range []int{2, 1, 3, 1} {
		has(n)
		p = p.upgrade(t)
		time.Sleep(50 * time.Millisecond)
		if n < 3 {
			p.reload(t)
		}
	}
	l.end(t)
	p.terminate(t)
}

// A program that reads its Corefile again and again loses nothing.
func TestReloadsBySignal(t *testing.T) {
	l := newTraffic(t, "")
	p := runProgram(t, l.dir)
	l.beginAll(t)
	begin := time.Now()
	n := figure("RELOADS", 10)
	for range n {
		p.reload(t)
	}
	t.Logf("a reload took %s", time.Since(begin)/time.Duration(n))
	l.end(t)
	p.terminate(t)
}

// A program that another one has begun in its place reads its Corefile again as any other one does.
func TestReloadAfterUpgrade(t *testing.T) {
	dir, port := t.TempDir(), loopback.Port()
	corefile := func(addr string) {
		text := fmt.Sprintf(".:%d {\n\tbind 127.0.0.1\n\ttemplate IN A {\n\t\tanswer \"{{ .Name }} 1 IN A %s\"\n\t}\n}\n", port, addr)
		if err := os.WriteFile(filepath.Join(dir, "Corefile"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	corefile("192.0.2.1")
	p := runProgram(t, dir)
	for i, addr := range []string{"192.0.2.2", "192.0.2.3"} {
		p = p.upgrade(t)
		const last = "compatible with" // of the lines of a start
		eventually.Holds(t, "the other program has started", func() bool { return strings.Count(p.out.String(), last) == i+2 })
		corefile(addr)
		p.reload(t)
		c := clients.UDPClient{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
		r, err := c.Ask(question("www.example.org.", dns.TypeA))
		if err != nil || len(r.Answer) != 1 || r.Answer[0].(*dns.A).A.String() != addr {
			t.Fatalf("not %s: %v, %v; the program says:\n%s", addr, r, err, p.out)
		}
	}
	p.terminate(t)
}
