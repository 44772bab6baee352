// Package loop finds out, when a server starts, whether the queries that it forwards come back to it. Such a loop
// would multiply each query without end, so it ends the process with a line that says what to look for, or is broken if the
// Corefile wants that.
//
//	start ──▶ probe.go: one query for a name that nobody can know ──▶ the server's own socket
//	                                                                       │
//	     Loop sees the name for the third time ◀── forward ◀── chain ◀─────┘
//	          │
//	          └──▶ trace.go: a name for each upstream, sent straight to it ──▶ those that come back tell which ones carry the loop
//	                    │                                                      and who hands the queries back to us
//	                    ├──▶ exit: the last lines of the process
//	                    └──▶ break.go: what comes from those is refused, until they do not come back any more
//
// Only queries of type HINFO are looked at, and only until the probe has been answered. A Loop serves
// any number of queries at once. Start at Loop.ServeDNS and prober.run.
package loop

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "loop"

var logger = log.NewWithPlugin(pluginName)

// enough is how often the probe may be seen: once as it was sent, and once more if it was sent again.
const enough = 2

// Loop counts how often the probe comes by.
type Loop struct {
	Next plugin.Handler

	sync.RWMutex                     // guards what follows
	seen         int                 // since the probe was sent last
	found        bool                // it was seen too often
	traces       map[string]*sighted // by their names, while upstreams are traced

	off    atomic.Bool
	zone   string // in lower case
	qname  string // of the probe, in lower case
	addr   string // where the probe is sent, as the log line says it
	broken broken // what is refused, if loops are broken

	upstreams func() []*proxy.Proxy    // who may send the probe back; may be nil
	conclude  func(from sighted)       // what is done about a loop, on another goroutine; nil ends the process at once
	fatal     func(f string, v ...any) // ends the process
}

// sighted is who brought a name back.
type sighted struct {
	text string // as the log line says it
	addr netip.Addr
	seen bool
}

// New is a Loop for a zone, with a probe of its own.
func New(zone string) *Loop {
	zone = plugin.Name(zone).Normalize()
	return &Loop{zone: zone, qname: secretName(zone), fatal: logger.Fatalf}
}

// secretName is a name below zone that nobody can know.
func secretName(zone string) string {
	var b [16]byte
	cryptorand.Read(b[:]) // never fails
	if zone == "." {
		zone = ""
	}
	return fmt.Sprintf("%d.%d.%s", binary.BigEndian.Uint64(b[:])>>2, binary.BigEndian.Uint64(b[8:])>>2, zone)
}

// Name is the plugin's name.
func (l *Loop) Name() string { return pluginName }

// ServeDNS looks whether the query is the probe, and passes it on, unless a loop has been found: then it goes round no more.
func (l *Loop) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) > 0 && l.looksAt(r.Question[0].Qtype) && l.ends(w, r.Question[0].Name) {
		return dns.RcodeServerFailure, nil
	}
	return plugin.NextOrFailure(pluginName, l.Next, ctx, w, r)
}

// ServeWire passes the query on, if it cannot be the probe.
func (l *Loop) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if l.looksAt(q.Type()) {
		return wire.Unpack
	}
	return plugin.NextWire(pluginName, l.Next, ctx, w, q)
}

// WireSelf returns l.
func (l *Loop) WireSelf() plugin.Handler { return l }

// Prompt implements plugin.Prompt.
func (l *Loop) Prompt() bool { return true }

// looksAt reports whether queries of a type may be the probe.
func (l *Loop) looksAt(qtype uint16) bool { return qtype == dns.TypeHINFO && !l.off.Load() }

// ends notes a query for a name, and reports whether it is to go no further: it has come back.
func (l *Loop) ends(w dns.ResponseWriter, name string) bool {
	name = strings.ToLower(name)
	from := sighted{text: w.RemoteAddr().String(), addr: wire.PeerOf(w.RemoteAddr(), nil).Client.Addr(), seen: true}
	l.Lock()
	if t := l.traces[name]; t != nil {
		*t = from
		l.Unlock()
		return true
	}
	if name != l.qname {
		l.Unlock()
		return false
	}
	l.seen++
	found, first := l.seen > enough, !l.found
	l.found = l.found || found
	l.Unlock()
	switch {
	case !found:
		return false
	case l.conclude == nil:
		l.fatal("%s", l.text(from))
	case first:
		l.conclude(from)
	}
	return true
}

// text tells of a loop that was found as from brought the probe back.
func (l *Loop) text(from sighted) string {
	return fmt.Sprintf(`Loop (%s -> %s) detected for zone %q, see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO %s"`, from.text, l.addr, l.zone, l.qname)
}

// forget begins the count anew, for a probe that is sent again.
func (l *Loop) forget() {
	l.Lock()
	l.seen = 0
	l.Unlock()
}
