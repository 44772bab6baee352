// Package fetch gets zones from their primaries: whole (AXFR, RFC 5936), or what changed (IXFR, RFC 1995).
//
//	Client.Serial ──SOA query──▶ primary
//	Client.Zone ──IXFR, AXFR──▶ primary ──messages──▶ reader ──▶ stream ──▶ zone.Builder or zone.Edit ──▶ zone.Zone
//
// A transfer is bounded in records, octets and time, and takes effect as a whole or not at all: the result is a new
// version of the zone, or an error that says why there is none. Signatures (TSIG, RFC 8945) are checked message by
// message.
//
// stream.go decides what a sequence of records means, and knows no sockets; conn.go has these. A Client may be used
// by any number of goroutines. Start at Client.Zone.
package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// Client fetches zones from one primary. Its fields must not be changed while it is used.
type Client struct {
	Primary string     // host:port
	Source  netip.Addr // where queries come from; the zero Addr leaves it to the system
	Key     *Key       // signs queries, and has to sign the answers; nil for none
	Limits  Limits
	// TLS makes transfers go over TLS (RFC 9103). Without a name in it, the certificate must be for the primary's
	// address.
	TLS *tls.Config
	// Wanted, if it is set, reports whether somebody waits for a transfer to end: another one, or who would ask another
	// primary. One that is slow then gives way, with an error.
	Wanted func() bool
}

// Key is a TSIG key.
type Key struct {
	Name      string // fully qualified and in lower case
	Algorithm string // as github.com/miekg/dns names it
	Secret    string // in base64
}

// Limits bound a transfer. What is 0 is as the constants say; LimitsFor makes some that fit a process.
type Limits struct {
	Records int
	Octets  int64         // of messages
	Total   time.Duration // of the whole transfer
	Idle    time.Duration // in which nothing comes, and for connecting
	Pace    time.Duration // in which a transfer that others wait for has to bring leastPace octets
}

// What Limits are if they do not say otherwise, and LimitsFor at most.
const (
	DefaultRecords = 50_000_000
	DefaultOctets  = 4 << 30
	DefaultTotal   = time.Hour
	DefaultIdle    = 10 * time.Second
	DefaultPace    = 30 * time.Second
)

// leastPace is what a link of some kbit/s brings.
const leastPace = 10 << 10

// What a transfer may take of a process' memory, and has in any case.
const (
	memoryShare  = 4
	recordMemory = 256 // octets that most records need while a zone is made of them
	leastRecords = 1_000_000
)

// LimitsFor is the limits of transfers for a process that may use so many octets of memory: what a transfer brings fits
// into a quarter of it, or is a million records.
func LimitsFor(memory int64) Limits {
	records := min(max(memory/memoryShare/recordMemory, leastRecords), DefaultRecords)
	return Limits{Records: int(records), Octets: min(records*recordMemory, DefaultOctets)}
}

// What holds for each: the field, or the default if it is 0.

func (l Limits) records() int         { return cmp.Or(l.Records, DefaultRecords) }
func (l Limits) octets() int64        { return cmp.Or(l.Octets, DefaultOctets) }
func (l Limits) total() time.Duration { return cmp.Or(l.Total, DefaultTotal) }
func (l Limits) idle() time.Duration  { return cmp.Or(l.Idle, DefaultIdle) }
func (l Limits) pace() time.Duration  { return cmp.Or(l.Pace, DefaultPace) }

// Errors that callers decide by.
var (
	ErrConnect = errors.New("cannot connect")                // no query was sent
	ErrCurrent = errors.New("the primary has nothing newer") // of Zone
	ErrSlow    = errors.New("it is too slow, and others wait")

	errEmpty = errors.New("the primary answers without records") // where an SOA record has to be first (RFC 5936 §2.2)
)

// Serial asks for the serial of a zone's SOA record, over TCP. origin is in wire form.
func (c *Client) Serial(ctx context.Context, origin []byte) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.Limits.idle())
	defer cancel()
	conn, err := c.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.close()
	if err := conn.ask(origin, wire.TypeSOA, nil); err != nil {
		return 0, err
	}
	m, err := conn.message(c.Limits.idle())
	if err != nil {
		return 0, err
	}
	for {
		rec, ok, err := m.next()
		switch {
		case err != nil:
			return 0, err
		case !ok:
			return 0, fmt.Errorf("the answer has no SOA record of %s", wire.Text(origin))
		// Names are in lower case on both sides.
		case rec.Type == wire.TypeSOA && string(rec.Owner) == string(origin):
			return serialOf(rec.RData)
		}
	}
}

// Zone fetches a zone. If old is not nil, only what changed since is asked for, and if that fails, the whole zone.
// The error is ErrCurrent if the primary has old, or an older version. warn is told of single records that are left
// out.
func (c *Client) Zone(ctx context.Context, origin []byte, old *zone.Zone, warn func(format string, args ...any)) (*zone.Zone, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Limits.total())
	defer cancel()
	if old != nil {
		v, err := c.transfer(ctx, origin, old, warn)
		// Any other failure may be for the steps only: a primary need not keep them, nor we fit them.
		if err == nil || errors.Is(err, ErrCurrent) || errors.Is(err, ErrConnect) || errors.Is(err, ErrSlow) || ctx.Err() != nil {
			return v, err
		}
	}
	v, err := c.transfer(ctx, origin, nil, warn)
	// Of a whole zone the serial is not compared before it has come: a primary that was set back is an error, not
	// news.
	if err == nil && old != nil && !zone.Newer(v.Serial(), old.Serial()) {
		return nil, fmt.Errorf("serial went back: %d, after %d", v.Serial(), old.Serial())
	}
	return v, err
}

// transfer is one transfer: incremental, if there is an old version.
func (c *Client) transfer(ctx context.Context, origin []byte, old *zone.Zone, warn func(string, ...any)) (*zone.Zone, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	qtype := uint16(wire.TypeAXFR)
	if old != nil {
		qtype = wire.TypeIXFR
	}
	if err := conn.ask(origin, qtype, old); err != nil {
		return nil, err
	}
	s := newStream(origin, old, warn)
	records := 0
	for first := true; ; first = false {
		wait := c.Limits.idle()
		if s.alone() {
			wait = min(wait, aloneWait)
		}
		m, err := conn.message(wait)
		if err != nil {
			return nil, after(records, err)
		}
		if first && m.left == 0 { // some answer like that what they do not know; more would not come
			return nil, errEmpty
		}
		for {
			rec, ok, err := m.next()
			if err != nil {
				return nil, after(records, err)
			}
			if !ok {
				break
			}
			// Counted one by one, as a record needs memory; of an incremental transfer those that are removed count,
			// too.
			if records++; records > c.Limits.records() {
				return nil, fmt.Errorf("more than %d records", c.Limits.records())
			}
			if err := s.take(rec); err != nil {
				return nil, err
			}
		}
		if s.ended() {
			if err := conn.settled(); err != nil {
				return nil, after(records, err)
			}
			return s.build()
		}
	}
}

// aloneWait is how long more is waited for behind one SOA record that is newer than ours. Over UDP it says that the
// whole zone has to be asked for (RFC 1995 §4), and some say it over TCP, too; those who send each record in a
// message of its own have the next one ready.
const aloneWait = time.Second

// after adds to an error how far the transfer got.
func after(records int, err error) error {
	if records == 0 {
		return err
	}
	return fmt.Errorf("after %d records: %w", records, err)
}

// dial connects to the primary.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	d := &net.Dialer{Timeout: c.Limits.idle()}
	if c.Source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.Source, 0))
	}
	n, err := hostaddrs.Dial(ctx, d, "tcp", c.Primary)
	if err == nil && c.TLS != nil {
		n, err = c.secure(ctx, n)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	return newConn(ctx, n, c), nil
}

// secure puts TLS onto a connection. Both sides have to agree on DNS (RFC 9103 §7.1), unless the primary does not
// negotiate.
func (c *Client) secure(ctx context.Context, n net.Conn) (net.Conn, error) {
	cfg := c.TLS.Clone()
	// A primary that negotiates and does not know it ends the handshake.
	cfg.NextProtos = []string{"dot"}
	if cfg.ServerName == "" {
		cfg.ServerName = addressOf(c.Primary)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limits.idle())
	defer cancel()
	secured := tls.Client(n, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		n.Close()
		return nil, err
	}
	return secured, nil
}

// addressOf is the address of a primary as certificates have it: without the interface that leads there.
func addressOf(primary string) string {
	host, _, _ := net.SplitHostPort(primary)
	host, _, _ = strings.Cut(host, "%")
	return host
}
