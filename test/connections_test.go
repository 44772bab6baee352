package test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// connected is a server with a listener of each scheme, and a client of each with a connection.
type connected struct {
	running
	dir     string
	ports   map[string]int
	clients map[string]clients.Client
}

// connectedSchemes are the schemes of clients, with that of their listener.
var connectedSchemes = map[string]string{"dns": "dns", "tls": "tls", "https/2": "https", "https/1": "https", "https3": "https3", "quic": "quic", "grpc": "grpc"}

// atOnce is how many connections two queries at one time take, if more than one.
var atOnce = map[string]int{"https/1": 2}

// corefile is a configuration with listeners of all schemes. Names below slow take a moment.
func (c *connected) corefile(answer string) string {
	var keys [2]strings.Builder
	for scheme, port := range c.ports {
		fmt.Fprintf(&keys[0], "%s://.:%d ", scheme, port)
		fmt.Fprintf(&keys[1], "%s://slow.:%d ", scheme, port)
	}
	const block = "%s{\nbind 127.0.0.1\ntls %[2]s/cert.pem %[2]s/key.pem\n%s\n}\n"
	return fmt.Sprintf(block, keys[0].String(), c.dir, "template IN A {\nanswer \"{{ .Name }} 1 IN A "+answer+"\"\n}") +
		fmt.Sprintf(block, keys[1].String(), c.dir, "erratic {\ndrop 0\ntruncate 0\ndelay 1 400ms\n}")
}

func connect(t *testing.T) *connected {
	t.Helper()
	c := &connected{dir: t.TempDir(), ports: map[string]int{}, clients: map[string]clients.Client{}}
	certificates(t, c.dir)
	for _, scheme := range connectedSchemes {
		if c.ports[scheme] == 0 {
			c.ports[scheme] = loopback.Port()
		}
	}
	i, err := CoreDNSServer(c.corefile("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	c.instance = i
	t.Cleanup(c.end)
	for kind, scheme := range connectedSchemes {
		c.clients[kind] = clients.Connect(t, kind, fmt.Sprintf("127.0.0.1:%d", c.ports[scheme]))
	}
	return c
}

// askAll asks each client, and wants the answer.
func (c *connected) askAll(t *testing.T, name, answer string) {
	t.Helper()
	for kind, client := range c.clients {
		m, err := client.Ask(question(name, dns.TypeA))
		if err != nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 || !strings.HasSuffix(m.Answer[0].String(), answer) {
			t.Errorf("%s: got %v, %v, want %s", kind, m, err, answer)
		}
		if most := max(1, atOnce[kind]); client.Dials() > most {
			t.Errorf("%s: connected %d times", kind, client.Dials())
		}
	}
}

func (c *connected) reload(t *testing.T, answer string) (took time.Duration) {
	t.Helper()
	begin := time.Now()
	next, err := c.instance.Restart(NewInput(c.corefile(answer)))
	if err != nil {
		t.Fatal(err)
	}
	c.instance = next
	return time.Since(begin)
}

// Connections live on over reloads, and their next query meets the new configuration.
func TestConnectionsSurviveReloads(t *testing.T) {
	c := connect(t)
	c.askAll(t, "www.example.org.", "192.0.2.1")
	for n := 2; n < 8; n++ {
		answer := fmt.Sprintf("192.0.2.%d", n)
		c.reload(t, answer)
		c.askAll(t, "www.example.org.", answer)
	}
}

// Queries that are at work when a reload comes are answered by the configuration that they began with, on their connection; the reload
// does not wait for them.
func TestReloadDoesNotWait(t *testing.T) {
	c := connect(t)
	c.askAll(t, "www.example.org.", "192.0.2.1")
	var wg sync.WaitGroup
	for kind, client := range c.clients {
		wg.Go(func() {
			if m, err := client.Ask(question("name.slow.", dns.TypeA)); err != nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) == 0 {
				t.Errorf("%s: got %v, %v", kind, m, err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // all are at work
	if took := c.reload(t, "192.0.2.2"); took > 300*time.Millisecond {
		t.Errorf("the reload took %s", took)
	}
	c.askAll(t, "www.example.org.", "192.0.2.2")
	wg.Wait()
	c.reload(t, "192.0.2.3")
	c.askAll(t, "www.example.org.", "192.0.2.3")
}

// Clients that never stop asking lose nothing over reloads, and none of them has to connect again.
func TestReloadsUnderLoad(t *testing.T) {
	c := connect(t)
	c.askAll(t, "www.example.org.", "192.0.2.1")
	stop := make(chan struct{})
	var answered atomic.Int64
	var wg sync.WaitGroup
	for kind, client := range c.clients {
		each := 2
		if kind == "https/1" {
			each = 1 // a second one may take a third connection
		}
		for range each {
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					m, err := client.Ask(question(fmt.Sprintf("q%d.example.org.", n), dns.TypeA))
					if err != nil || len(m.Answer) != 1 {
						t.Errorf("%s, query %d: got %v, %v", kind, n, m, err)
						return
					}
					answered.Add(1)
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	longest := time.Duration(0)
	for n := range 20 {
		longest = max(longest, c.reload(t, fmt.Sprintf("192.0.2.%d", n+1)))
		time.Sleep(10 * time.Millisecond)
	}
	close(stop)
	wg.Wait()
	c.askAll(t, "www.example.org.", "192.0.2.20")
	t.Logf("%d queries were answered; the longest reload took %s", answered.Load(), longest)
}
