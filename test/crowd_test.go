package test

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/miekg/dns"
)

// silent is an upstream that answers nothing, and knows what it was asked.
type silent struct {
	conn net.PacketConn

	mu    sync.Mutex
	asked map[string]bool
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.UDPConn).SetReadBuffer(4 << 20)
	s := &silent{conn: conn, asked: map[string]bool{}}
	go s.serve()
	return s
}

func (s *silent) serve() {
	buf := make([]byte, 4096)
	for {
		n, _, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		m := new(dns.Msg)
		if m.Unpack(buf[:n]) != nil {
			continue
		}
		s.mu.Lock()
		s.asked[m.Question[0].Name] = true
		s.mu.Unlock()
	}
}

// names is how many names were asked.
func (s *silent) names() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func fire(t *testing.T, c net.Conn, name string) {
	t.Helper()
	b, err := question(name, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	c.Write(b)
}

// A flood of names whose servers are silent: the upstream is asked for as many as may wait, for what is kept of each takes
// memory. It was asked for all once, those whose clients had been dropped, too.
func TestFloodOfSilentNames(t *testing.T) {
	const most, flood = 100, 3000
	up, metrics := newSilent(t), loopback.Addr()
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nprometheus "+metrics+"\ncache\nforward . "+up.conn.LocalAddr().String()+"\nlimits {\nwaiting "+fmt.Sprint(most)+"\n}\n}")
	c, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	for i := range flood {
		fire(t, c, fmt.Sprintf("n%d.example.org.", i))
		if i%50 == 49 {
			time.Sleep(time.Millisecond) // not to overflow a socket
		}
	}
	eventually.Holds(t, "others are dropped", func() bool {
		n, _ := strconv.ParseFloat(dropped(metrics), 64)
		return n > flood/2
	})
	got, rounds := up.names(), 1+int(time.Since(began)/(5*time.Second)) // for so long each waits
	if got < most || got > rounds*most+runtime.GOMAXPROCS(0) {          // loops that look at one time
		t.Errorf("the upstream was asked for %d names of %d, want %d", got, flood, rounds*most)
	}
}
