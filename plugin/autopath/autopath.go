// Package autopath walks a client's search list for it: a stub resolver that asks for www.example.com.SEARCH.DOMAIN gets, if there is no
// such name, what the next names of its list have, and saves the round trips.
//
//	query below the list's first entry ──▶ name in each entry ──▶ plugins below ──▶ NXDOMAIN: the next entry
//	                                                                          └───▶ else: the reply, with an alias to the name
//
// The plugins below see each name that is tried as a query of its own: acl judges it, cache keeps it. Queries
// that the list is not for pass in either lane; the others are served in the message lane. Start at AutoPath.ServeDNS.
package autopath

import (
	"context"
	"errors"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "autopath"

// Func returns the search list of the client of a query: fully qualified names, and "" at the end for the name as it is. It is
// empty if there is none for that client.
type Func func(request.Request) []string

// AutoPather is a plugin that knows search lists.
type AutoPather interface {
	AutoPath(request.Request) []string
}

// AutoPath walks search lists.
type AutoPath struct {
	Next  plugin.Handler
	Zones []string // of which names are completed

	lists *lists // nil: there are none

	validates bool // AD is what *validator* found out, for the name that was found; known when the server has started
}

// lists is where search lists come from. It is complete when the server has started.
type lists struct {
	zones [][]byte // of AutoPath, in wire form

	search []string // the list of all clients
	first  []byte   // its first entry in wire form, nil if it has none

	of     Func // in place of search, if not nil
	prompt bool // of does not wait
}

// list is the search list for a query.
func (l *lists) list(state request.Request) []string {
	switch {
	case l == nil:
		return nil
	case l.of != nil:
		return l.of(state)
	}
	return l.search
}

// Name is the plugin's name.
func (a *AutoPath) Name() string { return pluginName }

// ServeDNS tries the entries of the client's list.
func (a *AutoPath) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	}
	state := request.Request{W: w, Req: r}
	name := state.Name()
	if len(r.Question) == 0 || plugin.Zones(a.Zones).Matches(name) == "" {
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	}
	search := a.lists.list(state)
	base, ok := completed(name, search)
	if !ok {
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	}
	return a.walk(ctx, w, r, base, search)
}

// completed is a lower name without the first entry of a search list, and without its final dot. It reports false if the name does not
// lie below that entry.
func completed(name string, search []string) (base string, ok bool) {
	if len(search) == 0 || len(search[0]) < 2 {
		return "", false
	}
	cut, _ := dns.PrevLabel(name, dns.CountLabel(search[0])) // the entry may be written otherwise
	if cut == 0 || !plugin.Name(search[0]).Matches(name) {
		return "", false
	}
	return name[:cut-1], true
}

// patience is how long clients wait for a reply, as resolv.conf has it by default.
const patience = 5 * time.Second

// walk asks for base in each entry of the list, and answers with the first reply that is no NXDOMAIN, or else with the
// denial of the name that the client asked for. An entry that fails without a reply is passed over as long as the
// client waits, unless its place is for another query; if it was the first one, there is no telling whether the client's name exists, and it gets SERVFAIL in
// place of a denial.
func (a *AutoPath) walk(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, base string, search []string) (int, error) {
	s := &step{Wrapped: plugin.Wrapped{ResponseWriter: w}, asked: r.Question[0].Name, validates: a.validates}
	began := time.Now()
	for i, entry := range search {
		s.begin(i)
		query := *r
		query.Question = append([]dns.Question(nil), r.Question...)
		if i > 0 { // else as the client wrote it
			query.Question[0].Name = base + "." + entry
			if _, err := wire.AppendName(nil, query.Question[0].Name); err != nil {
				continue // it is longer than names are
			}
		}
		plugin.NoteLookedUp(ctx, query.Question[0].Name)
		rcode, err := plugin.NextOrFailure(a.Name(), a.Next, ctx, s, &query)
		s.errs = append(s.errs, err)
		switch {
		case s.answered:
			if i > 0 {
				autoPathCount.WithLabelValues(metrics.WithServer(ctx)).Inc()
			}
			if !plugin.ClientWrite(rcode) {
				rcode = dns.RcodeSuccess // else the server would write once more
			}
			return rcode, s.err()
		case s.denied == nil && rcode == dns.RcodeServerFailure && ctx.Err() == nil && time.Since(began) < patience && !errors.Is(err, eventloop.ErrGaveWay):
			continue
		case s.denied == nil && (s.first == nil || plugin.ClientWrite(rcode) && err == nil): // failed, or dropped
			return rcode, s.err()
		case s.denied == nil || err != nil: // there is no telling whether the name exists
			return s.giveUp()
		}
	}
	return s.giveUp()
}

// ServeWire passes queries on that the list is not for, and such as were parked: others have been asked for them.
func (a *AutoPath) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if l := a.lists; l != nil && q.Awaited() == nil && l.covers(q.Lower()) && l.mayComplete(q) {
		return wire.Unpack
	}
	return plugin.NextWire(a.Name(), a.Next, ctx, w, q)
}

// WireSelf returns a.
func (a *AutoPath) WireSelf() plugin.Handler { return a }

// covers reports whether a lower name lies in one of the zones.
func (l *lists) covers(name []byte) bool {
	for _, z := range l.zones {
		if wire.Below(name, z) {
			return true
		}
	}
	return false
}

// mayComplete reports whether a search list may be for q.
func (l *lists) mayComplete(q *wire.Query) bool {
	switch {
	case l.of == nil:
		return l.first != nil && len(q.Lower()) > len(l.first) && wire.Below(q.Lower(), l.first)
	case !l.prompt:
		return true
	}
	return asked(q, func(state request.Request) bool {
		_, ok := completed(state.Name(), l.of(state))
		return ok
	})
}
