package proxy

import (
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// Connections are dialled, used and given back; the one that was idle for longest comes first.
func TestTransport(t *testing.T) {
	s := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) { w.WriteMsg(new(dns.Msg).SetReply(r)) })
	defer s.Close()
	p := NewProxy("test", s.Addr, transport.DNS)
	tr := p.GetTransport()
	tr.Start()
	for _, proto := range []string{"udp", "tcp"} {
		a, cached, err := tr.Dial(proto)
		if err != nil || cached {
			t.Fatal(cached, err)
		}
		if err := a.WriteMsg(new(dns.Msg).SetQuestion("example.org.", dns.TypeA)); err != nil {
			t.Fatal(err)
		}
		if m, err := a.ReadMsg(); err != nil || !m.Response {
			t.Fatal(m, err)
		}
		b, cached, err := tr.Dial(proto)
		if err != nil || cached || a == b {
			t.Fatal(cached, err)
		}
		tr.Yield(a)
		tr.Yield(b)
		for _, want := range []*persistConn{a, b} {
			if c, cached, err := tr.Dial(proto); c != want || !cached || err != nil {
				t.Errorf("%s: got %p, %v, %v, want %p", proto, c, cached, err, want)
			}
		}
		tr.SetMaxIdleConns(1)
		tr.Yield(a)
		tr.Yield(b)
		if err := b.SetDeadline(time.Now()); err == nil {
			t.Errorf("%s: a connection beyond max_idle_conns is not closed", proto)
		}
		tr.SetExpire(time.Millisecond)
		time.Sleep(5 * time.Millisecond)
		if c, cached, err := tr.Dial(proto); c == a || cached || err != nil {
			t.Errorf("%s: an expired connection came: %v %v", proto, cached, err)
		}
		tr.SetMaxIdleConns(0)
		tr.SetExpire(defaultExpire)
	}
	c, _, _ := tr.Dial("udp")
	tr.Yield(c)
	p.Stop()
	if err := c.SetDeadline(time.Now()); err == nil {
		t.Error("Stop left a connection open")
	}
	if _, _, err := tr.Dial("udp"); err == nil || err.Error() != ErrTransportStopped {
		t.Error(err)
	}
}

// The Transport's settings are the Proxy's.
func TestTransportSettings(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:53", transport.DNS)
	p.SetExpire(time.Minute)
	p.SetMaxAge(time.Hour)
	p.GetTransport().SetMaxIdleConns(7)
	p.SetLocalAddress(net.ParseIP("::ffff:192.0.2.1"))
	c := p.GetTransport().conf.Load()
	if c.expire != time.Minute || c.maxAge != time.Hour || c.maxIdle != 7 || c.local.String() != "192.0.2.1" {
		t.Errorf("%+v", c)
	}
	if got := p.GetHealthchecker().GetLocalAddress().String(); got != "192.0.2.1" {
		t.Error(got)
	}
}

func TestDialTime(t *testing.T) {
	d := newDialTime()
	if d.timeout() != maxDialTimeout {
		t.Error(d.timeout())
	}
	for range 50 {
		d.note(time.Millisecond)
	}
	if d.timeout() != minDialTimeout {
		t.Error(d.timeout())
	}
	d.note(8*time.Second + 750*time.Microsecond)
	if got := d.timeout(); got < 3900*time.Millisecond || got > 4100*time.Millisecond {
		t.Error(got)
	}
}
