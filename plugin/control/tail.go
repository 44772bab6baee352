package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// tails is those who watch queries. While there are none, a query costs one look.
type tails struct {
	now atomic.Pointer[[]*tail] // nil if there are none

	mu    sync.Mutex // of who changes now
	ended bool
}

// Limits of tails.
const (
	mostTails = 16
	tailQueue = 1024
)

func (t *tails) any() bool { return t.now.Load() != nil }

// tail is one who watches. Lines that he is too slow for are dropped and counted.
type tail struct {
	match   matcher
	lines   chan []byte
	over    chan struct{} // closed when nothing more is shown
	dropped atomic.Uint64
}

// add begins a tail. It reports false if there are as many as may be.
func (t *tails) add(m matcher) (*tail, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*tail
	if now := t.now.Load(); now != nil {
		all = *now
	}
	if len(all) >= mostTails || t.ended {
		return nil, false
	}
	one := &tail{match: m, lines: make(chan []byte, tailQueue), over: make(chan struct{})}
	next := append(slices.Clone(all), one)
	t.now.Store(&next)
	return one, true
}

// remove ends a tail.
func (t *tails) remove(one *tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now.Load(); now != nil {
		t.set(slices.DeleteFunc(slices.Clone(*now), func(o *tail) bool { return o == one }))
	}
}

func (t *tails) set(all []*tail) {
	if len(all) == 0 {
		t.now.Store(nil)
		return
	}
	t.now.Store(&all)
}

// end ends all tails: nobody shows them anything any more.
func (t *tails) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if now := t.now.Load(); now != nil {
		t.now.Store(nil)
		for _, one := range *now {
			close(one.over)
		}
	}
}

// show gives a query to those who want it.
func (t *tails) show(s *seen) {
	now := t.now.Load()
	if now == nil {
		return
	}
	var line []byte
	for _, one := range *now {
		if !one.match.fits(s) {
			continue
		}
		if line == nil {
			line = s.line(time.Now())
		}
		select {
		case one.lines <- line:
		default:
			one.dropped.Add(1)
		}
	}
}

// shown is a query as the lines of a tail have it.
type shown struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"`
	View   string    `json:"view,omitempty"`
	Client string    `json:"client"`
	Proto  string    `json:"proto"`
	Name   string    `json:"name"`
	Type   string    `json:"type"`
	Rcode  string    `json:"rcode"` // "" if no reply was sent
	Size   int       `json:"size"`
	Millis float64   `json:"ms"`
	Error  string    `json:"error,omitempty"`
}

// line is the query as an object, with the end of the line.
func (s *seen) line(now time.Time) []byte {
	out := shown{
		Time: now, Server: s.server, View: s.view, Client: s.client.String(), Proto: s.proto, Name: wire.Text(s.name),
		Type: dns.Type(s.qtype).String(), Rcode: rcode.ToString(s.rcode), Size: s.size, Millis: float64(s.took) / float64(time.Millisecond),
	}
	if s.dropped {
		out.Rcode = ""
	}
	if s.err != nil {
		out.Error = s.err.Error()
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil // there is nothing in it that could not be told
	}
	return append(b, '\n')
}

// matcher says which queries a tail shows. Its zero value fits all.
type matcher struct {
	zone   []byte // lower, in wire form; nil is any
	qtype  uint16
	rcode  int // -1 is any
	client netip.Prefix
	slower time.Duration
	failed bool // with an error, or SERVFAIL
}

// fits reports whether a query is one of those wanted.
func (m *matcher) fits(s *seen) bool {
	return (m.zone == nil || wire.Below(s.name, m.zone)) &&
		(m.qtype == 0 || m.qtype == s.qtype) &&
		(m.rcode < 0 || m.rcode == s.rcode && !s.dropped) &&
		(!m.client.IsValid() || m.client.Contains(s.client.Addr().Unmap().WithZone(""))) &&
		s.took >= m.slower &&
		(!m.failed || s.err != nil || s.rcode == dns.RcodeServerFailure)
}

// newMatcher reads the parameters name, type, rcode, client, slower and failed of a request.
func newMatcher(get func(string) string) (m matcher, err error) {
	m.rcode = -1
	if text := get("name"); text != "" {
		if m.zone, err = wire.LowerName(dns.Fqdn(text)); err != nil {
			return m, fmt.Errorf("name %q is no domain name", text)
		}
	}
	if m.qtype, err = typeOf(get("type")); err != nil {
		return m, err
	}
	if text := get("rcode"); text != "" {
		code, ok := dns.StringToRcode[strings.ToUpper(text)]
		if !ok {
			return m, fmt.Errorf("unknown rcode %q", text)
		}
		m.rcode = code
	}
	if text := get("client"); text != "" {
		if m.client, err = prefixOf(text); err != nil {
			return m, fmt.Errorf("client %q is neither an address nor a network", text)
		}
	}
	if text := get("slower"); text != "" {
		if m.slower, err = time.ParseDuration(text); err != nil {
			return m, fmt.Errorf("slower %q is no duration such as 100ms", text)
		}
	}
	m.failed, err = truth(get, "failed")
	return m, err
}

func prefixOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// follow writes the lines of a tail until the client goes away, n lines are written, or the server ends.
func (t *tails) follow(ctx context.Context, w http.ResponseWriter, m matcher, n int) error {
	one, ok := t.add(m)
	if !ok {
		return fmt.Errorf("%d watch already", mostTails)
	}
	defer t.remove(one)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // so that he knows that it has begun
	for written := 0; n <= 0 || written < n; written++ {
		if lost := one.dropped.Swap(0); lost > 0 {
			fmt.Fprintf(w, "{\"dropped\":%d}\n", lost)
		}
		select {
		case line := <-one.lines:
			if _, err := w.Write(line); err != nil {
				return nil // he has gone
			}
			if len(one.lines) == 0 {
				_ = flush.Flush()
			}
		case <-one.over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
