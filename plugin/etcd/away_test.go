package etcd

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// A copy answers at once while etcd is away, also what has a lease, of which it may have been told nothing yet.
func TestLeasesWhileAway(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a.web.skydns.test", "b.web.skydns.test", "c.web.skydns.test"} {
		lease, err := s.Client.Grant(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		s.put(name, `{"host":"192.0.2.1","ttl":60}`, etcdcv3.WithLease(lease.ID))
	}
	e := s.plugin(defaultViewSize)
	s.Kill()
	for range 2 {
		began := time.Now()
		m, err := ask(e, "web.skydns.test.", dns.TypeA)
		if took := time.Since(began); err != nil || text(m) != "NOERROR web.skydns.test. 60 IN A 192.0.2.1" || took > 3*time.Second {
			t.Errorf("after %v: %v, %v", took, text(m), err)
		}
	}
}

// Who looks at the metric learns that etcd is away, and that it is back.
func TestWatchUp(t *testing.T) {
	s := start(t)
	e := s.plugin(0)
	e.view = newView(e.admitted, "/skydns", defaultViewSize, e.lastRev.see)
	e.view.check = 20 * time.Millisecond
	e.view.start()
	t.Cleanup(e.view.stop)
	up := func(want float64) func() bool {
		return func() bool { return testutil.ToFloat64(viewUp.WithLabelValues(msg.Path("", "skydns")+"/")) == want }
	}
	eventually.Holds(t, "the copy", e.Ready)
	eventually.Holds(t, "1", up(1))
	s.Kill()
	eventually.Holds(t, "0", up(0))
	s.Run()
	eventually.Holds(t, "1 again", up(1))
	e.view.stop()
	for name, gauge := range map[string]prometheus.Collector{"whether they are followed": viewUp, "keys": viewKeys} {
		if n := testutil.CollectAndCount(gauge); n != 0 {
			t.Errorf("%s: told of %d paths when nobody has any", name, n)
		}
	}
}

// The metric tells, too, that etcd went away between the copy and the watch.
func TestWatchUpBeforeWatch(t *testing.T) {
	s := start(t)
	e := s.plugin(0)
	e.view = newView(e.admitted, "/skydns", defaultViewSize, func(int64) { s.Kill() })
	e.view.check = 20 * time.Millisecond
	viewUp.WithLabelValues(e.view.prefix).Set(1)
	e.view.start()
	t.Cleanup(e.view.stop)
	eventually.Holds(t, "the copy", e.view.settled)
	eventually.Holds(t, "0", func() bool { return testutil.ToFloat64(viewUp.WithLabelValues(e.view.prefix)) == 0 })
}

// member stands for a member of etcd, to which it hands connections on until it hangs.
type member struct {
	url  string
	hung chan struct{}
}

func newMember(t *testing.T, of string) *member {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	m := &member{url: "http://" + l.Addr().String(), hung: make(chan struct{})}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			to, err := net.Dial("tcp", strings.TrimPrefix(of, "http://"))
			if err != nil {
				c.Close()
				continue
			}
			t.Cleanup(func() { to.Close() })
			go m.relay(to, c)
			go m.relay(c, to)
		}
	}()
	return m
}

func (m *member) relay(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		select {
		case <-m.hung:
			return
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// TestMemberHangs asks two members of etcd, of which one hangs: the other one answers, also of leases.
func TestMemberHangs(t *testing.T) {
	s := start(t)
	lease, err := s.Client.Grant(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	s.put("a.web.skydns.test", `{"host":"192.0.2.1","ttl":60}`, etcdcv3.WithLease(lease.ID))
	hangs, goesOn := newMember(t, s.URL), newMember(t, s.URL)
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{hangs.url, goesOn.url}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	e := s.plugin(0)
	e.Client = client
	const want = "NOERROR web.skydns.test. 60 IN A 192.0.2.1"
	for range 10 {
		if m, err := ask(e, "web.skydns.test.", dns.TypeA); err != nil || text(m) != want {
			t.Fatalf("%v, %v", text(m), err)
		}
	}
	close(hangs.hung)
	for range 3 {
		if m, err := ask(e, "web.skydns.test.", dns.TypeA); err != nil || text(m) != want {
			t.Errorf("%v, %v", text(m), err)
		}
	}
}

// Where too many queries wait, one that waits for an etcd which hangs gives way.
func TestGivesWay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{"http://" + l.Addr().String()}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e, gone := &Etcd{Client: client}, make(chan error, 1)
	go func() {
		ctx := context.WithValue(context.Background(), eventloop.PlaceKey{}, eventloop.AtWork)
		err := e.ask(ctx, "/skydns/a", allBelow, func([]*mvccpb.KeyValue, int) {})
		gone <- err
	}()
	eventually.Holds(t, "one that gives way", func() bool { return eventloop.MakeRoom(eventloop.AtWork) })
	if err := <-gone; err != eventloop.ErrGaveWay {
		t.Error(err)
	}
}

// An etcd that was away for long is there again soon after it has come back: it is looked for every few seconds, and
// not, as gRPC does, after longer and longer pauses up to two minutes.
func TestLookedForOften(t *testing.T) {
	if most := reconnect.Backoff.MaxDelay + reconnect.MinConnectTimeout; most > 10*time.Second {
		t.Errorf("after a pause of %v", most)
	}
	before := reconnect
	defer func() { reconnect = before }()
	reconnect.Backoff.BaseDelay, reconnect.Backoff.MaxDelay = 10*time.Millisecond, 10*time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var looked atomic.Int64
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			looked.Add(1)
			c.Close()
		}
	}()
	c := caddy.NewTestController("dns", "etcd skydns.local {\nendpoint http://"+l.Addr().String()+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	e := dnsserver.GetConfig(c).Plugin[0](nil).(*Etcd)
	defer e.OnShutdown()
	eventually.Holds(t, "many attempts", func() bool { return looked.Load() > 20 })
}

// A transfer has the name servers though etcd goes away under way: a zone without any, which looks whole, would be
// taken.
func TestTransferWhileAway(t *testing.T) {
	s := start(t)
	s.put("ns1.ns.dns.skydns.test", `{"host":"192.0.2.53"}`)
	s.put("a.skydns.test", `{"host":"192.0.2.1"}`)
	hangs := newMember(t, s.URL)
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{hangs.url}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	e := s.plugin(0)
	e.Client = client
	ch, err := e.Transfer("skydns.test.", 0)
	if err != nil {
		t.Fatal(err)
	}
	types, began := "", time.Now()
	for all := range ch {
		for _, rr := range all {
			if types == "" {
				close(hangs.hung)
			}
			types += dns.TypeToString[rr.Header().Rrtype] + " "
		}
	}
	if types != "SOA NS A A SOA " || time.Since(began) >= requestTime {
		t.Errorf("after %v: %s", time.Since(began), types)
	}
}
