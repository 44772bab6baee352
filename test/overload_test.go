package test

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// load sends queries for a name at a steady rate and counts the replies to each.
type load struct {
	conn    net.Conn
	packet  []byte
	sent    int
	replied atomic.Int64
	seen    [1 << 16]atomic.Bool // by id; there must be fewer queries than that
}

func newLoad(t *testing.T, addr, name string) *load {
	t.Helper()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.(*net.UDPConn).SetReadBuffer(4 << 20)
	packet, err := question(name, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	l := &load{conn: conn, packet: packet}
	go l.read()
	return l
}

func (l *load) read() {
	buf := make([]byte, 4096)
	for {
		n, err := l.conn.Read(buf)
		if err != nil {
			return
		}
		if n >= 12 && buf[3]&0xF == dns.RcodeSuccess && !l.seen[binary.BigEndian.Uint16(buf)].Swap(true) {
			l.replied.Add(1)
		}
	}
}

// run sends so many queries a second for a while; label makes each name another one, if it is not 0.
func (l *load) run(rate int, d time.Duration, label int) {
	const tick = time.Millisecond
	began := time.Now()
	for l.sent = 0; ; time.Sleep(tick) {
		due := int(float64(rate) * min(time.Since(began), d).Seconds())
		for ; l.sent < due; l.sent++ {
			binary.BigEndian.PutUint16(l.packet, uint16(l.sent))
			for i, n := 0, l.sent; i < label; i++ {
				l.packet[13+i] = 'a' + byte(n%16)
				n /= 16
			}
			l.conn.Write(l.packet)
		}
		if time.Since(began) >= d {
			return
		}
	}
}

// droppedFrom tells how many queries were dropped from now on as too many waited. Servers of other tests count at the same
// endpoint.
func droppedFrom(metrics string) (dropped func() int) {
	all := func() int { return test.ScrapeMetricAsInt(metrics, "coredns_dns_queries_dropped_total", "waiting", 0) }
	before := all()
	return func() int { return all() - before }
}

// An upstream that says nothing, and ten times as many queries for it as for what is known here: that is answered as if nothing were.
func TestBlackHole(t *testing.T) {
	hole, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	db := filepath.Join(t.TempDir(), "db.example.org")
	if err := os.WriteFile(db, []byte(laneZone), 0o600); err != nil {
		t.Fatal(err)
	}
	metrics := loopback.Addr()
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nprometheus "+metrics+"\ncache\nfile "+db+" example.org\nforward . "+hole.LocalAddr().String()+"\nlimits {\nwaiting 5000\n}\n}")
	dropped := droppedFrom(metrics)
	before := runtime.NumGoroutine()
	here, away := newLoad(t, udp, "www.example.org."), newLoad(t, udp, "aaaa.example.net.")
	const rate, d = 1000, 3 * time.Second
	var all sync.WaitGroup
	all.Go(func() { away.run(10*rate, d, 4) })
	all.Go(func() { here.run(rate, d, 0) })
	time.Sleep(d / 2)
	grown := runtime.NumGoroutine() - before
	all.Wait()
	time.Sleep(100 * time.Millisecond)
	if got := here.replied.Load(); got*10 < int64(here.sent)*9 || here.sent < rate {
		t.Errorf("%d of %d answers of our own", got, here.sent)
	}
	if dropped() == 0 {
		t.Error("nothing was dropped: the bound was not reached")
	}
	if grown > 1000 {
		t.Errorf("%d goroutines more", grown)
	}
	t.Logf("%d of %d own answers; %d of %d others dropped; %d goroutines more", here.replied.Load(), here.sent, dropped(), away.sent, grown)
}

// late answers each query after a while, without a goroutine for it.
func late(t *testing.T, after time.Duration) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.(*net.UDPConn).SetReadBuffer(4 << 20)
	type reply struct {
		b    []byte
		to   net.Addr
		when time.Time
	}
	queue := make(chan reply, 1<<16)
	go func() {
		defer close(queue)
		buf := make([]byte, 4096)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			b := append([]byte{}, buf[:n]...)
			b[2] |= 0x80
			queue <- reply{b, from, time.Now().Add(after)}
		}
	}()
	go func() {
		for r := range queue {
			time.Sleep(time.Until(r.when))
			c.WriteTo(r.b, r.to)
		}
	}()
	return c.LocalAddr().String()
}

// Queries that wait two seconds for their upstream are not lost, however many they are.
func TestSlowUpstreamLosesNothing(t *testing.T) {
	upstream := late(t, 2*time.Second)
	for try := 1; ; try++ { // the test's own sockets may overflow on a busy machine
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nforward . "+upstream+" {\nread_timeout 4s\n}\n}")
		l := newLoad(t, udp, "aaaa.example.net.")
		l.run(5000, 3*time.Second, 4)
		for range 300 {
			if l.replied.Load() == int64(l.sent) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		got := l.replied.Load()
		t.Logf("%d of %d answered", got, l.sent)
		if l.sent < 14000 {
			t.Errorf("only %d were sent", l.sent)
		}
		if got == int64(l.sent) {
			return
		}
		if try == 3 {
			t.Fatalf("%d of %d queries got no answer", int64(l.sent)-got, l.sent)
		}
	}
}
