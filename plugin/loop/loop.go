// Package loop finds out, when a server starts, whether the queries that it forwards come back to it. Such a loop
// would multiply each query without end, so it ends the process with a line that says what to look for.
//
//	start ──▶ probe.go: one query for a name that nobody can know ──▶ the server's own socket
//	                                                                       │
//	     Loop sees the name for the third time ◀── forward ◀── chain ◀─────┘
//
// Only queries of type HINFO are looked at, and only until the probe has been answered. A Loop serves
// any number of queries at once. Start at Loop.ServeDNS and prober.run.
package loop

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log"
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

	sync.RWMutex     // guards seen
	seen         int // since the probe was sent last
	off          atomic.Bool
	zone         string // in lower case
	qname        string // of the probe, in lower case
	addr         string // where the probe is sent, as the log line says it

	upstreams func() []string          // who may have sent the probe back, for the log; may be nil
	fatal     func(f string, v ...any) // ends the process
}

// New is a Loop for a zone, with a probe of its own.
func New(zone string) *Loop {
	zone = plugin.Name(zone).Normalize()
	return &Loop{zone: zone, qname: probeName(zone), fatal: logger.Fatalf}
}

// probeName is a name below zone that nobody can know.
func probeName(zone string) string {
	var b [16]byte
	cryptorand.Read(b[:]) // never fails
	if zone == "." {
		zone = ""
	}
	return fmt.Sprintf("%d.%d.%s", binary.BigEndian.Uint64(b[:])>>2, binary.BigEndian.Uint64(b[8:])>>2, zone)
}

// Name is the plugin's name.
func (l *Loop) Name() string { return pluginName }

// ServeDNS looks whether the query is the probe, and passes it on.
func (l *Loop) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) > 0 && l.looksAt(r.Question[0].Qtype) && strings.EqualFold(r.Question[0].Name, l.qname) {
		l.saw(w)
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

// looksAt reports whether queries of a type may be the probe.
func (l *Loop) looksAt(qtype uint16) bool { return qtype == dns.TypeHINFO && !l.off.Load() }

// saw counts the probe, and ends the process when it came by too often.
func (l *Loop) saw(w dns.ResponseWriter) {
	l.Lock()
	l.seen++
	loop := l.seen > enough
	l.Unlock()
	if !loop {
		return
	}
	if l.upstreams != nil {
		if u := l.upstreams(); len(u) > 0 {
			logger.Errorf("The probe came back from one of the upstreams %s", strings.Join(u, ", "))
		}
	}
	l.fatal(`Loop (%s -> %s) detected for zone %q, see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO %s"`, w.RemoteAddr(), l.addr, l.zone, l.qname)
}

// forget begins the count anew, for a probe that is sent again.
func (l *Loop) forget() {
	l.Lock()
	l.seen = 0
	l.Unlock()
}
