package proxy

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A reply to a check has its id, and says that it is one.
func TestReplies(t *testing.T) {
	query := []byte{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for what, tc := range map[string]struct {
		head string
		want bool
	}{
		"a header alone":  {"\x01\x02\x81\x80\x00\x00\x00\x00\x00\x00\x00\x00", true},
		"and more":        {"\x01\x02\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01", true},
		"less":            {"\x01\x02\x81\x80\x00\x00\x00\x00\x00\x00\x00", false},
		"no reply":        {"\x01\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", false},
		"the id's begin":  {"\x01\x03\x81\x80\x00\x00\x00\x00\x00\x00\x00\x00", false},
		"the id's end":    {"\x03\x02\x81\x80\x00\x00\x00\x00\x00\x00\x00\x00", false},
		"nothing at all":  {"", false},
		"ids turned over": {"\x02\x01\x81\x80\x00\x00\x00\x00\x00\x00\x00\x00", false},
	} {
		if got := headsReply([]byte(tc.head), query); got != tc.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

func TestCheck(t *testing.T) {
	var last atomic.Pointer[dns.Msg]
	answer := func(q []byte) []byte {
		m := new(dns.Msg)
		if m.Unpack(q) == nil {
			last.Store(m)
		}
		b := append([]byte(nil), q[:12]...)
		b[2] |= 0x80
		b[3] |= dns.RcodeRefused
		return append(b, 0xFF, 0xFF, 0xFF) // the rest is nothing
	}
	udp := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		wrong := append([]byte(nil), q...)
		wrong[0]++
		send(wrong)
		send(answer(q))
	})
	tcp := tcpUpstream(t, func(conn net.Conn) {
		q, _ := readFrame(conn)
		conn.Write(frame(answer(q)))
		readFrame(conn)
	})
	for _, tc := range []struct {
		addr   string
		set    func(HealthChecker)
		name   string
		rd     bool
		passes bool
	}{
		{udp, func(HealthChecker) {}, ".", true, true},
		{udp, func(h HealthChecker) { h.SetDomain("example.org"); h.SetRecursionDesired(false) }, "example.org.", false, true},
		{tcp, func(h HealthChecker) { h.SetTCPTransport() }, ".", true, true},
		{tcp, func(h HealthChecker) { h.SetReadTimeout(50 * time.Millisecond) }, "", false, false},
	} {
		p := proxyTo(t, tc.addr, transport.DNS)
		tc.set(p.GetHealthchecker())
		p.fails.Store(5)
		last.Store(nil)
		before := testutil.ToFloat64(healthcheckFailures.WithLabelValues("test", tc.addr))
		err := p.GetHealthchecker().Check(p)
		failed := testutil.ToFloat64(healthcheckFailures.WithLabelValues("test", tc.addr)) - before
		if !tc.passes {
			if err == nil || p.Fails() != 6 || failed != 1 {
				t.Errorf("%v, %d fails, %v counted", err, p.Fails(), failed)
			}
			continue
		}
		m := last.Load()
		if err != nil || m == nil || p.Fails() != 0 || failed != 0 {
			t.Errorf("%v %v, %d fails, %v counted", err, m, p.Fails(), failed)
			continue
		}
		if q := m.Question[0]; q.Name != tc.name || q.Qtype != dns.TypeNS || m.RecursionDesired != tc.rd || m.IsEdns0() != nil {
			t.Error(m)
		}
	}
}

// A failed upstream is probed until it is back, and not any more then.
func TestProber(t *testing.T) {
	var up atomic.Bool
	var asked atomic.Int64
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		asked.Add(1)
		if up.Load() {
			send(replyTo(q))
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	p.GetHealthchecker().SetReadTimeout(50 * time.Millisecond)
	p.Start(10 * time.Millisecond)
	if p.Down(2) {
		t.Error("down before anything failed")
	}
	for range 3 {
		p.Healthcheck() // one prober, however often it is asked for
	}
	eventually.Holds(t, "down", func() bool { return p.Down(2) })
	if p.Down(0) {
		t.Error("down with max_fails 0")
	}
	up.Store(true)
	eventually.Holds(t, "up again", func() bool { return p.Fails() == 0 })
	eventually.Holds(t, "the prober ends", func() bool { p.prober.mu.Lock(); defer p.prober.mu.Unlock(); return !p.prober.running })
	n := asked.Load()
	time.Sleep(50 * time.Millisecond)
	if asked.Load() != n {
		t.Error("an upstream that is well is probed")
	}
}

// A query's reply says that the upstream is well; the prober need not ask again.
func TestReplyEndsProbing(t *testing.T) {
	var probes atomic.Int64
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		if binary.BigEndian.Uint16(q[len(q)-4:]) == dns.TypeNS {
			probes.Add(1)
			return
		}
		send(replyTo(q))
	})
	p := proxyTo(t, addr, transport.DNS)
	p.GetHealthchecker().SetReadTimeout(5 * time.Millisecond)
	p.Start(500 * time.Millisecond)
	p.Healthcheck()
	eventually.Holds(t, "a failure", func() bool { return p.Fails() == 1 })
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || p.Fails() != 0 {
		t.Fatal(err, p.Fails())
	}
	time.Sleep(700 * time.Millisecond)
	if n := probes.Load(); n != 1 {
		t.Errorf("%d probes", n)
	}
}

// Stop ends a check that waits.
func TestStopEndsProbing(t *testing.T) {
	p := NewProxy("test", udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {}), transport.DNS)
	p.GetHealthchecker().SetReadTimeout(time.Hour)
	p.Start(time.Hour)
	p.Healthcheck()
	time.Sleep(20 * time.Millisecond)
	stopped := make(chan struct{})
	go func() { p.Stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Fatal("Stop waits for the check")
	}
	p.Healthcheck()
	if p.Fails() != 0 {
		t.Error("an aborted check is counted")
	}
}
