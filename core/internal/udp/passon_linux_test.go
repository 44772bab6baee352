package udp

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/test/clients"
)

func socketsAt(t *testing.T, port string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Skip("the list of sockets cannot be read here")
	}
	var p int
	fmt.Sscan(port, &p)
	inodes := map[string]bool{} // the list may tell one twice
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasSuffix(f[1], fmt.Sprintf(":%04X", p)) && f[2] == "00000000:0000" {
			inodes[f[9]] = true
		}
	}
	return len(inodes)
}

// The sockets of an address pass from one server to the next, and all are closed with the last.
func TestSocketsPassOn(t *testing.T) {
	for _, Consolidate = range []bool{true, false} {
		t.Run(fmt.Sprintf("consolidate %v", Consolidate), socketsPassOn)
	}
	Consolidate = true
}

func socketsPassOn(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	p := shareable(t)
	server := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), p, Options{})
	addr := server.addr
	_, port, _ := net.SplitHostPort(addr)
	eventually.Holds(t, "all sockets are open", func() bool { return socketsAt(t, port) == runtime.GOMAXPROCS(0) })

	// One client for each few queries, so that all sockets get some, unless one loop serves all.
	stop := make(chan struct{})
	var lost int
	var asked atomic.Int64
	var client sync.WaitGroup
	client.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			c := &dns.Client{Timeout: clients.AskTime}
			asked.Add(1)
			if _, _, err := c.Exchange(new(dns.Msg).SetQuestion("www.", dns.TypeA), addr); err != nil {
				lost++
			}
		}
	})
	for range 20 {
		handed := duplicate(p.(*net.UDPConn)) // as caddy hands it over
		next := serveOn(t, coretest.Service(t, coretest.Label(t), new(coretest.Lane)), handed, Options{})
		if err := server.end(); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "there are as many sockets as before", func() bool { return socketsAt(t, port) == runtime.GOMAXPROCS(0) })
		server, p = next, handed
		before := asked.Load() // one may be on its way since before
		eventually.Holds(t, "somebody asks", func() bool { return asked.Load() > before })
	}
	close(stop)
	client.Wait()
	if lost > 0 {
		t.Errorf("%d of %d queries were lost", lost, asked.Load())
	}
	server.end()
	eventually.Holds(t, "no socket is left", func() bool { return socketsAt(t, port) == 0 })
}

// The last server that reads an address has its sockets leave, also while one before it, which reads no more, still has
// them for a reply that is late: what comes then is for another process.
func TestSocketsLeaveWhileOthersDrain(t *testing.T) {
	for _, Consolidate = range []bool{true, false} {
		t.Run(fmt.Sprintf("consolidate %v", Consolidate), socketsLeaveWhileOthersDrain)
	}
	Consolidate = true
}

func socketsLeaveWhileOthersDrain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	lane := &coretest.Lane{Held: make(chan struct{})}
	p := shareable(t)
	handed := duplicate(p.(*net.UDPConn))
	first := serveOn(t, coretest.Service(t, coretest.Label(t), lane), p, Options{})
	late, err := net.Dial("udp", first.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	query, _ := coretest.Query("hold.").Pack()
	late.Write(query)
	eventually.Holds(t, "a query waits", func() bool { return lane.Holding.Load() == 1 })
	s := coretest.Service(t, coretest.Label(t), new(coretest.Lane))
	second := serveOn(t, s, handed, Options{})
	drained := coretest.Stopping(t, first.end)
	<-first.done

	other, err := reuseport.ListenPacket("udp", first.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s.Leaving.Store(true)
	if err := second.end(); err != nil {
		t.Fatal(err)
	}
	const n = 50
	for range n {
		c, err := net.Dial("udp", first.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(query)
	}
	other.SetReadDeadline(time.Now().Add(clients.AskTime))
	for i := range n {
		if _, _, err := other.ReadFrom(make([]byte, 512)); err != nil {
			t.Fatalf("after %d of %d datagrams: %v", i, n, err)
		}
	}
	close(lane.Held)
	drained()
	late.SetReadDeadline(time.Now().Add(clients.AskTime))
	if _, err := late.Read(make([]byte, 512)); err != nil {
		t.Errorf("the late reply: %v", err)
	}
}
