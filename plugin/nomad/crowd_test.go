package nomad

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// crowd is an agent that has any service, and counts what it costs to ask it.
type crowd struct {
	now, most, all  atomic.Int64 // open connections: now, and at most; and all there were
	first, blocking atomic.Int64 // queries without an index, and with one

	pause   time.Duration // before an answer to a query without an index
	slow    bool          // the end of an answer comes later than the rest
	forgets bool          // answers to queries with an index come at once, and have none
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("index") != "" {
		if c.blocking.Add(1); !c.forgets {
			<-r.Context().Done() // nothing changes
			return
		}
	} else {
		c.first.Add(1)
		time.Sleep(c.pause)
		w.Header().Set("X-Nomad-Index", "7")
	}
	fmt.Fprint(w, `[`)
	w.(http.Flusher).Flush() // an answer in chunks, as long ones are
	fmt.Fprint(w, `{"Address":"192.0.2.1","Port":1}]`+"\n")
	if c.slow {
		w.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func newCrowd(t *testing.T, c *crowd) string {
	t.Helper()
	s := httptest.NewUnstartedServer(c)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.all.Add(1)
			n := c.now.Add(1)
			for old := c.most.Load(); n > old && !c.most.CompareAndSwap(old, n); old = c.most.Load() {
			}
		case http.StateClosed, http.StateHijacked:
			c.now.Add(-1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// Agents take 100 connections of one client by default, and refuse the others. Many services, and many queries at one time, need
// less than that.
func TestFewConnections(t *testing.T) {
	c := &crowd{pause: 5 * time.Millisecond}
	n := serving(t, newCrowd(t, c))
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			if got, err := ask(n, fmt.Sprintf("s%d.default.service.nomad.", i), dns.TypeA); err != nil {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	eventually.Holds(t, "services to be followed", func() bool { return c.blocking.Load() >= maxFollowed })
	// Agents hear of the end of a connection after the next one has begun, so they count some more than maxConns.
	if most := c.most.Load(); most > 100 || most <= maxFollowed {
		t.Errorf("%d connections", most)
	}
}

// Queries for a service that come while it is asked for share the answer.
func TestQueriesShareRequest(t *testing.T) {
	c := &crowd{pause: 300 * time.Millisecond}
	n := serving(t, newCrowd(t, c))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got, err := ask(n, "redis.default.service.nomad.", dns.TypeA); err != nil {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	if first := c.first.Load(); first > 10 {
		t.Errorf("%d requests", first)
	}
}

// One who gives up does not take the answer from the others.
func TestSharedRequestOutlivesQuery(t *testing.T) {
	c := &crowd{pause: 200 * time.Millisecond}
	n := serving(t, newCrowd(t, c))
	ctx, cancel := context.WithCancel(context.Background())
	gone, k := make(chan error, 1), key{"default", "redis"}
	go func() {
		_, err := n.catalog.get(ctx, k)
		gone <- err
	}()
	eventually.Holds(t, "the request", func() bool { return c.first.Load() == 1 })
	cancel()
	if all, err := n.catalog.get(context.Background(), k); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	if err := <-gone; err == nil {
		t.Error("who gave up has an answer")
	}
}

// A connection is used again also if the end of an answer comes late.
func TestConnectionIsUsedAgain(t *testing.T) {
	c := &crowd{slow: true}
	a, err := newAgent(newCrowd(t, c), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.http.CloseIdleConnections)
	for range 3 {
		var all []instance
		if _, err := a.get(t.Context(), "/v1/service/x", url.Values{}, &all); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
	}
	if n := c.all.Load(); n != 1 {
		t.Errorf("three queries in turn made %d connections", n)
	}
}

// An agent that stops telling indices answers at once: it is not asked again and again.
func TestAgentWithoutIndex(t *testing.T) {
	c := &crowd{forgets: true}
	n := serving(t, newCrowd(t, c))
	ask(n, "redis.default.service.nomad.", dns.TypeA)
	eventually.Holds(t, "the service to be followed", func() bool { return c.blocking.Load() > 0 })
	time.Sleep(200 * time.Millisecond)
	if asked := c.blocking.Load(); asked > 2 {
		t.Errorf("asked %d times", asked)
	}
}

// Where too many queries wait, one for a service that the agent is silent about gives way. It is the agent's to answer
// its question later, but of such questions there are not more and more.
func TestGivesWay(t *testing.T) {
	release := make(chan struct{})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { <-release }))
	defer agent.Close()
	defer close(release)
	n := serving(t, agent.URL)
	for i := range maxPending {
		n.catalog.pending[key{"default", fmt.Sprint(i)}] = &inquiry{done: make(chan struct{})}
	}
	for _, service := range []string{"0", "another"} {
		gone := make(chan error, 1)
		go func() {
			ctx := context.WithValue(context.Background(), eventloop.PlaceKey{}, eventloop.AtWork)
			_, err := n.catalog.get(ctx, key{"default", service})
			gone <- err
		}()
		eventually.Holds(t, "one that gives way", func() bool { return eventloop.MakeRoom(eventloop.AtWork) })
		if err := <-gone; err != eventloop.ErrGaveWay {
			t.Error(service, err)
		}
	}
	if all := len(n.catalog.pending); all != maxPending {
		t.Errorf("%d are pending", all)
	}
}
