package metrics

import (
	"bytes"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// pages writes what another handler answers, one page at a time: to gather all metrics takes milliseconds of a
// processor, and what was gathered takes memory until its last octet is written. Requests that come meanwhile wait for
// their turn, and share the page that was begun after they came, if they want the same. So queries do not wait for any
// number of scrapers, nor does a client that takes nothing hold more than a page.
type pages struct {
	made    http.Handler
	waiting atomic.Int64

	turn sync.Mutex
	last *page // nil if nobody waits for one
}

// page is an answer. It implements http.ResponseWriter while it is made, and is only read then.
type page struct {
	wanted string // what the request says that it may depend on
	begun  time.Time
	header http.Header
	status int // 0 is 200
	body   bytes.Buffer
}

func (p *page) Header() http.Header         { return p.header }
func (p *page) WriteHeader(status int)      { p.status = status }
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }

// ServeHTTP writes a page that was begun after the request came.
func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made := p.get(r, time.Now())
	maps.Copy(w.Header(), made.header)
	if made.status != 0 {
		w.WriteHeader(made.status)
	}
	_, _ = w.Write(made.body.Bytes()) // who does not take it is gone
}

// get is the page for a request that came at that time.
func (p *pages) get(r *http.Request, came time.Time) *page {
	wanted := r.URL.RawQuery + "\n" + strings.Join(r.Header["Accept"], ",") + "\n" + strings.Join(r.Header["Accept-Encoding"], ",")
	p.waiting.Add(1)
	p.turn.Lock()
	defer p.turn.Unlock()
	made := p.last
	if made == nil || made.wanted != wanted || !made.begun.After(came) {
		made = &page{wanted: wanted, begun: time.Now(), header: http.Header{}}
		p.made.ServeHTTP(made, r)
	}
	if p.last = made; p.waiting.Add(-1) == 0 {
		p.last = nil
	}
	return made
}
