package proxy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// allGiveWay lets no exchange be one that does not.
func allGiveWay(t *testing.T) {
	every := stayer
	t.Cleanup(func() { stayer = every })
	stayer = math.MaxInt64
}

// endings are the exchanges that have ended, in order.
type endings struct {
	mu  sync.Mutex
	all []*Exchange
}

func (e *endings) EndExchange(x *Exchange) {
	e.mu.Lock()
	e.all = append(e.all, x)
	e.mu.Unlock()
}

func (e *endings) list() []*Exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*Exchange(nil), e.all...)
}

// The oldest one gives way, whoever asks it; not those that are too young, do not give way, or have ended.
func TestGiveWay(t *testing.T) {
	allGiveWay(t)
	silent := func([]byte, *net.UDPAddr, func([]byte)) {}
	two := []*Proxy{proxyTo(t, udpUpstream(t, silent), transport.DNS), proxyTo(t, udpUpstream(t, silent), transport.DNS)}
	var ended endings
	begin := func(p *Proxy, has eventloop.Place) *Exchange {
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		x := &Exchange{Query: b, Owner: &ended, GivesWay: has, Timeout: time.Minute}
		p.Begin(x)
		time.Sleep(time.Millisecond) // no two begin at the same time
		return x
	}
	clock := func() int64 { return int64(time.Since(epoch)) }
	start := clock()
	begin(two[0], 0)
	const both = eventloop.Parked | eventloop.AtWork
	first, second, third := begin(two[1], eventloop.Parked), begin(two[0], both), begin(two[1], eventloop.Parked)
	working := begin(two[0], eventloop.AtWork)
	now := clock()
	young := begin(two[0], both)
	if giveWay(eventloop.Parked, start+int64(eventloop.LeastPatience), nil) {
		t.Error("one gave way that had not been there")
	}
	for i, want := range []*Exchange{first, second, third} {
		if !giveWay(eventloop.Parked, now+int64(eventloop.LeastPatience), nil) {
			t.Fatalf("number %d does not give way", i)
		}
		if got := ended.list(); len(got) != i+1 || got[i] != want || want.Err != ErrGaveWay {
			t.Fatalf("%d have ended, want %d; error %v", len(got), i+1, want.Err)
		}
	}
	if giveWay(eventloop.Parked, now+int64(eventloop.LeastPatience), nil) {
		t.Error("one more gave way")
	}
	if !giveWay(eventloop.AtWork, now+int64(eventloop.LeastPatience), nil) || working.Err != ErrGaveWay {
		t.Error("who is at work does not give way")
	}
	two[0].Stop()
	if giveWay(eventloop.Parked, clock()+int64(eventloop.LeastPatience), nil) || young.Err == ErrGaveWay {
		t.Error("one gave way that had ended")
	}
	if got := len(ended.list()); got != 6 {
		t.Errorf("%d have ended, want 6", got)
	}
	two[1].Stop()
	for _, e := range ticking.list() {
		if e == &two[0].engine || e == &two[1].engine {
			t.Error("a stopped engine is looked at")
		}
	}
}

// What counts is how long the query waits that an exchange is for, whichever of its exchanges that is; and one gives way
// only if it fits.
func TestGiveWaySince(t *testing.T) {
	allGiveWay(t)
	p := proxyTo(t, udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {}), transport.DNS)
	var ended endings
	begin := func(since time.Time) *Exchange {
		b, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		x := &Exchange{Query: b, Owner: &ended, GivesWay: eventloop.Parked, Since: since, Timeout: time.Minute}
		p.Begin(x)
		return x
	}
	now := time.Now()
	young, third, old, oldest := begin(now), begin(now.Add(-time.Second)), begin(now.Add(-time.Minute)), begin(now.Add(-time.Hour))
	none := func(*Exchange) bool { return false }
	if GiveWay(eventloop.Parked, none) {
		t.Error("one gave way that does not fit")
	}
	if !GiveWay(eventloop.Parked, func(x *Exchange) bool { return x != oldest }) || old.Err != ErrGaveWay || oldest.Err != nil || third.Err != nil {
		t.Errorf("the oldest one that fits: %v, the others %v, %v", old.Err, oldest.Err, third.Err)
	}
	if !GiveWay(eventloop.Parked, nil) || oldest.Err != ErrGaveWay {
		t.Errorf("the oldest one: %v", oldest.Err)
	}
	if !GiveWay(eventloop.Parked, nil) || giveWay(eventloop.Parked, int64(now.Sub(epoch)), nil) || young.Err != nil {
		t.Error("a young one gave way")
	}
}

// leaver is an Ender for which somebody waits, or nobody does any more.
type leaver struct {
	endings
	waits bool
}

func (l *leaver) Waits() bool { return l.waits }

// What goes on for nobody does not give way, nor does it hide what does.
func TestNobodyWaitsForIt(t *testing.T) {
	allGiveWay(t)
	p := proxyTo(t, udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {}), transport.DNS)
	begin := func(owner Ender, age time.Duration) *Exchange {
		b, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		x := &Exchange{Query: b, Owner: owner, GivesWay: eventloop.Parked, Since: time.Now().Add(-age), Timeout: time.Minute}
		p.Begin(x)
		return x
	}
	gone, waits := new(leaver), &leaver{waits: true}
	for range 2 * lookAtOnce {
		begin(gone, time.Hour)
	}
	x := begin(waits, time.Minute)
	if !GiveWay(eventloop.Parked, nil) || x.Err != ErrGaveWay {
		t.Errorf("who waits did not give way: %v", x.Err)
	}
	if GiveWay(eventloop.Parked, nil) || len(gone.list()) != 0 {
		t.Errorf("%d gave way for which nobody waits", len(gone.list()))
	}
	p.Stop()
	if n := len(gone.list()); n != 2*lookAtOnce {
		t.Errorf("%d have ended, want %d", n, 2*lookAtOnce)
	}
}

// One is found among thousands of upstreams of which nothing is asked, as often as there is one.
func TestOneOfThousandsGivesWay(t *testing.T) {
	allGiveWay(t)
	for range 2000 {
		idle := new(engine)
		ticking.add(idle)
		t.Cleanup(func() { ticking.remove(idle) })
	}
	p := proxyTo(t, udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {}), transport.DNS)
	b, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	var ended endings
	const n = 100
	for range n {
		p.Begin(&Exchange{Query: slices.Clone(b), Owner: &ended, GivesWay: eventloop.Parked, Timeout: time.Minute})
	}
	now := p.engine.now() + int64(eventloop.LeastPatience) + 1
	for i := range n {
		if !giveWay(eventloop.Parked, now, nil) {
			t.Fatalf("%d of %d gave way", i, n)
		}
	}
	if giveWay(eventloop.Parked, now, nil) || len(ended.list()) != n {
		t.Errorf("%d ended, want %d", len(ended.list()), n)
	}
}

// Where all workers wait for an upstream, the job that has waited longest gives way, whoever asked it.
func TestJobsGiveWay(t *testing.T) {
	allGiveWay(t)
	held := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, _ := io.ReadAll(r.Body)
		if bytes.Contains(query, []byte("\x04slow")) {
			select {
			case <-held:
			case <-r.Context().Done():
			}
			return
		}
		w.Header().Set("content-type", doh.MimeType)
		w.Write(replyTo(query))
	}))
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 2 * maxWorkers} // on one connection, which is there before
	s.StartTLS()
	defer s.Close()
	defer close(held)
	p := proxyTo(t, strings.TrimPrefix(s.URL, "https://"), transport.HTTPS)
	p.SetHTTPClient(s.Client())
	p.SetReadTimeout(time.Minute)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	var ended endings
	var slow []*Exchange
	for i := range maxWorkers {
		b, err := new(dns.Msg).SetQuestion("slow.", dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		x := &Exchange{Query: b, Owner: &ended, GivesWay: eventloop.Place(i % 2)}
		slow = append(slow, x)
		p.Begin(x)
	}
	young := slow[0].begun
	if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, ErrBusy) && p.engine.now()-young < int64(eventloop.LeastPatience) {
		t.Errorf("one more than there may be, at once: %v", err)
	}
	time.Sleep(eventloop.LeastPatience)
	const more = 3
	for range more { // the place of one is free then
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range ended.list() {
		if !errors.Is(x.Err, ErrGaveWay) || !slices.Contains(slow[:more+1], x) { // one more if the first was asked late
			t.Errorf("number %d has ended: %v", slices.Index(slow, x), x.Err)
		}
	}
	if len(ended.list()) == 0 {
		t.Error("none gave way")
	}
}

// Jobs that were given up may wait for their workers as well, if these do not end what they were told to: then no more
// are taken than the channel has room for. Who asked waited for ever once, with the engine's lock.
func TestJobsThatWaitHaveABound(t *testing.T) {
	allGiveWay(t)
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS3)
	e := &p.engine
	e.mu.Lock()
	e.workers.workers, e.workers.owed = maxWorkers, maxWorkers
	e.workers.jobs = make(chan *Exchange, maxWorkers)
	for range maxWorkers {
		e.workers.jobs <- nil
	}
	old := &Exchange{begun: -int64(time.Hour), cancel: func(error) {}}
	e.workers.givers.add(old)
	e.unlock()
	b, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go p.Begin(&Exchange{Query: b, Owner: enderFunc(func(x *Exchange) { ended <- x.Err })})
	select {
	case err := <-ended:
		if err != ErrBusy || !old.gives {
			t.Errorf("%v, want ErrBusy; the old one gave way: %t", err, !old.gives)
		}
	case <-time.After(10 * time.Second):
		for range maxWorkers {
			<-e.workers.jobs
		}
		t.Error("it waits for room in the channel")
	}
	e.mu.Lock()
	e.workers = workerPool{}
	e.unlock()
}

// A connection on which nothing has come for as long as a query may wait takes no more when one gives way on it, for
// none may get that old.
func TestGiveWayOnADeadConnection(t *testing.T) {
	allGiveWay(t)
	var opened atomic.Int64
	p := proxyTo(t, tcpUpstream(t, func(conn net.Conn) {
		opened.Add(1)
		for {
			query, err := readFrame(conn)
			if err != nil {
				return
			}
			if !bytes.Contains(query, []byte("\x04slow")) {
				conn.Write(frame(replyTo(query)))
			}
		}
	}), transport.DNS)
	const most = time.Second
	p.SetReadTimeout(most)
	for range 2 {
		if _, err := ask(p, "www.example.org.", Options{ForceTCP: true}); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Fatalf("%d connections for two queries, one after the other", n)
	}
	time.Sleep(most)
	b, err := new(dns.Msg).SetQuestion("slow.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	var ended endings
	x := &Exchange{Query: b, Owner: &ended, GivesWay: eventloop.Parked, Stream: true}
	p.Begin(x)
	if !giveWay(eventloop.Parked, p.engine.now()+int64(eventloop.LeastPatience)+1, nil) {
		t.Fatal("it does not give way")
	}
	if _, err := ask(p, "www.example.org.", Options{ForceTCP: true}); err != nil || opened.Load() != 2 {
		t.Errorf("%d connections, %v", opened.Load(), err)
	}
}

// One in 64 stays, whatever comes: else an upstream that has become slow would not be known to be.
func TestStayers(t *testing.T) {
	stay := 0
	for i := range 64 << 10 {
		if stays(&Exchange{begun: int64(i) * 1000}) {
			stay++
		}
	}
	if stay < 900 || stay > 1150 {
		t.Errorf("%d of 65536 stay, want 1024", stay)
	}
}
