package test

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// silent is an upstream over UDP and TCP that answers nothing but names below "known.", and knows what it was asked.
type silent struct {
	conn net.PacketConn

	all atomic.Bool // it answers all names

	mu    sync.Mutex
	asked map[string]bool
}

func newSilent(t *testing.T) *silent {
	t.Helper()
	s := &silent{asked: map[string]bool{}}
	for try := 0; ; try++ { // a port that is free for both
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if s.conn, err = net.ListenPacket("udp", l.Addr().String()); err == nil {
			t.Cleanup(func() { l.Close() })
			t.Cleanup(func() { s.conn.Close() })
			go s.serveTCP(l)
			break
		}
		l.Close()
		if try == 9 {
			t.Fatal(err)
		}
	}
	s.conn.(*net.UDPConn).SetReadBuffer(4 << 20)
	go s.serve()
	return s
}

func (s *silent) serve() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		m := new(dns.Msg)
		if m.Unpack(buf[:n]) != nil {
			continue
		}
		if s.told(m) {
			b, _ := m.Pack()
			s.conn.WriteTo(b, from)
		}
	}
}

// told takes note of m, and makes it a reply, if it is to be answered.
func (s *silent) told(m *dns.Msg) (answered bool) {
	name := m.Question[0].Name
	s.mu.Lock()
	s.asked[name] = true
	s.mu.Unlock()
	m.Response = true
	return s.all.Load() || dns.IsSubDomain("known.", name)
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
	dropped, began := droppedFrom(metrics), time.Now()
	for i := range flood {
		fire(t, c, fmt.Sprintf("n%d.example.org.", i))
		if i%50 == 49 {
			time.Sleep(time.Millisecond) // not to overflow a socket
		}
	}
	eventually.Holds(t, "others are dropped", func() bool {
		return dropped() > flood/2
	})
	got, rounds := up.names(), 1+int(time.Since(began)/(200*time.Millisecond)) // for so long each waits before it gives way
	if got < most || got > rounds*most+runtime.GOMAXPROCS(0) {                 // loops that look at one time
		t.Errorf("the upstream was asked for %d names of %d, want %d", got, flood, rounds*most)
	}
}

// When all places are taken by names whose servers are silent, those that have waited long give way to names whose
// servers answer. All such were dropped once, for five seconds.
func TestSilentNamesGiveWay(t *testing.T) {
	for name, options := range map[string]string{"plain": "", "tcp": "force_tcp\nhedge\nmax_concurrent 1000"} {
		t.Run(name, func(t *testing.T) { silentNamesGiveWay(t, options) })
	}
}

func silentNamesGiveWay(t *testing.T, options string) {
	const most, known = 50, 25
	up, metrics := newSilent(t), loopback.Addr()
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nprometheus "+metrics+"\ncache\nforward . "+up.conn.LocalAddr().String()+" {\n"+options+
		"\n}\nlimits {\nwaiting "+fmt.Sprint(most)+"\n}\n}")
	answers := func(name string, timeout time.Duration) bool {
		m, _, err := (&dns.Client{Timeout: timeout}).Exchange(question(name, dns.TypeA), udp)
		return err == nil && m.Rcode == dns.RcodeSuccess
	}
	dropped := droppedFrom(metrics)
	for round := range 5 { // a machine that is busy may take so long that the silent ones have ended by themselves
		c, err := net.Dial("udp", udp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range most {
			fire(t, c, fmt.Sprintf("n%d.r%d.example.org.", i, round))
		}
		eventually.Holds(t, "all places are taken", func() bool { return up.names() >= (round+1)*most })
		eventually.Holds(t, "one gives way", func() bool { return answers(fmt.Sprintf("first.r%d.known.", round), 100*time.Millisecond) })
		for i := range known {
			fire(t, c, fmt.Sprintf("more%d.r%d.example.org.", i, round)) // takes the place that was left
			eventually.Holds(t, "it waits", func() bool { return up.was(fmt.Sprintf("more%d.r%d.example.org.", i, round)) })
			// Which is asked once more, as the next one may not have waited for long on a machine that is busy.
			name := fmt.Sprintf("n%d.r%d.known.", i, round)
			eventually.Holds(t, name+" is answered", func() bool { return answers(name, time.Second) })
		}
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Read(make([]byte, 512)); err != nil { // none has failed so far
			if n := dropped(); n < known {
				t.Errorf("%d were counted that gave way, want %d", n, known)
			}
			return
		}
	}
	t.Error("the silent ones had their places until they ended by themselves")
}

// The same for names that come over a connection, and in the message lane: who asked for those that give way is told so.
func TestSilentNamesOfAConnectionGiveWay(t *testing.T) {
	for name, plugins := range map[string]string{"wire lane": "cache", "message lane": "foreign"} {
		t.Run(name, func(t *testing.T) { connectionGivesWay(t, plugins) })
	}
}

func connectionGivesWay(t *testing.T, plugins string) {
	const most, known = 50, 10
	nextForeign = new(foreign)
	up := newSilent(t)
	_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\n"+plugins+"\nforward . "+up.conn.LocalAddr().String()+" {\nprefer_udp\n}\nlimits {\nwaiting "+
		fmt.Sprint(most)+"\n}\n}")
	answers := func(network, name string, timeout time.Duration) bool {
		addr := map[string]string{"udp": udp, "tcp": tcp}[network]
		m, _, err := (&dns.Client{Net: network, Timeout: timeout}).Exchange(question(name, dns.TypeA), addr)
		return err == nil && m.Rcode == dns.RcodeSuccess
	}
	for round := range 5 { // as above
		c, err := dns.Dial("tcp", tcp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silently := func(name string) {
			t.Helper()
			if err := c.WriteMsg(question(name, dns.TypeA)); err != nil {
				t.Fatal(err)
			}
			eventually.Holds(t, "it waits", func() bool { return up.was(name) })
		}
		began := time.Now()
		for i := range most {
			silently(fmt.Sprintf("n%d.r%d.example.org.", i, round))
		}
		eventually.Holds(t, "one gives way", func() bool { return answers("udp", fmt.Sprintf("first.r%d.known.", round), 100*time.Millisecond) })
		for i := range known {
			silently(fmt.Sprintf("more%d.r%d.example.org.", i, round)) // takes the place that was left
			network := [...]string{"udp", "tcp"}[i%2]
			name := fmt.Sprintf("n%d.r%d.known.", i, round)
			eventually.Holds(t, name+" is answered over "+network, func() bool { return answers(network, name, time.Second) })
		}
		if time.Since(began) > 4*time.Second {
			continue // the first ones have ended by themselves
		}
		c.SetReadDeadline(time.Now().Add(clients.AskTime))
		for i := range known {
			m, err := c.ReadMsg()
			if err != nil || m.Rcode != dns.RcodeServerFailure {
				t.Fatalf("number %d of those that gave way: %v, %v", i, m, err)
			}
		}
		return
	}
	t.Error("the silent ones had their places until they ended by themselves")
}

// An upstream that has died is found out, also if so many queries come that each gives way to another one before its
// time is over.
func TestDeadUpstreamInACrowd(t *testing.T) {
	dead, alive := newSilent(t), newSilent(t)
	alive.all.Store(true)
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nforward . "+dead.conn.LocalAddr().String()+" "+alive.conn.LocalAddr().String()+
		" {\npolicy sequential\n}\nlimits {\nwaiting 20\n}\n}")
	stop := make(chan struct{})
	var load sync.WaitGroup
	defer load.Wait()
	defer close(stop)
	load.Go(func() {
		c, err := net.Dial("udp", udp)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond): // in 100 ms all places are taken
				fire(t, c, fmt.Sprintf("n%d.example.org.", i))
			}
		}
	})
	n := 0
	eventually.Holds(t, "the other one is asked", func() bool {
		n++
		m, _, err := (&dns.Client{Timeout: 300 * time.Millisecond}).Exchange(question(fmt.Sprintf("mine%d.example.org.", n), dns.TypeA), udp)
		return err == nil && m.Rcode == dns.RcodeSuccess
	})
}

// was reports whether name was asked.
func (s *silent) was(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// serveTCP does over TCP what serve does.
func (s *silent) serveTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			conn := &dns.Conn{Conn: c}
			defer conn.Close()
			for {
				m, err := conn.ReadMsg()
				if err != nil {
					return
				}
				if s.told(m) {
					conn.WriteMsg(m)
				}
			}
		}()
	}
}
