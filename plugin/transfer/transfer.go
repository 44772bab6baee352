// Package transfer sends zones to secondaries, whole (AXFR, RFC 5936) or what changed (IXFR, RFC 1995), and tells them
// of changes (NOTIFY, RFC 1996).
//
//	AXFR, IXFR ──ServeDNS──▶ stanza: may this client? ──▶ Source: a version of the zone ──▶ messages, packed from it
//	                                                 └──▶ Transferer: a channel of records ──▶ messages
//	Changed ──▶ journal: what changed, version by version ──▶ IXFR
//	   │        (a reload hands it over)
//	   └──────▶ notifier ──▶ NOTIFY to the secondaries of the zone's stanza
//
// Other plugins of the server block have the zones; they are found when the server starts, by the methods that they
// have. The plugin knows which clients may have which zone, and what changed; not how a zone came to be.
//
// Any number of goroutines may call the methods of a Transfer. Start at Transfer.ServeDNS.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"google.golang.org/grpc/peer"
)

var tlog = log.NewWithPlugin("transfer")

type (
	// Transfer is the plugin. A nil Transfer notifies nobody.
	Transfer struct {
		// Transferers are asked for a zone one after the other until one has it. Fill it before the first query.
		Transferers []Transferer
		Next        plugin.Handler

		sent    status.TransferLog
		block   string // the keys of the server block
		stanzas []*stanza
		findKey func(name string) (keyring.Key, bool)
		notify  notifiers // from OnStartup to OnShutdown
		telling telling
		turns   turns

		mu         sync.Mutex               // guards what follows
		journals   map[string]*zone.Journal // by zone
		versions   map[string]*zone.Zone    // to which the journals lead
		inherited  map[string]legacy        // of zones whose first version is still to come
		forgetting *time.Timer              // until when
	}

	// Transferer is a plugin that has zones to transfer.
	Transferer interface {
		// Transfer gives the records of a zone, fully qualified and in lower case: the SOA record first, all others,
		// the SOA record last, in batches of any size; the channel is closed at the end. serial is what the client has,
		// 0 if it wants the whole zone. If that is the zone's serial or newer, the channel gives the SOA record alone.
		// It is ErrNotAuthoritative for any name but that of a zone that the plugin has. The channel is always read to
		// its end.
		Transfer(zone string, serial uint32) (<-chan []dns.RR, error)
	}

	// Source is a Transferer whose zones are package zone's. Its transfers are packed from them without a dns.RR for
	// each record, and are incremental if the plugin tells of changes with Changed.
	Source interface {
		Transferer
		// Versions' error is ErrNotAuthoritative as for Transfer, another one if there is none that may be sent.
		zone.Versions
	}

	// Historian is a Source that knows itself what changed, and does not tell with Changed.
	Historian interface {
		Source
		// Since is what changed from a serial to a version that Version gave, nil if that is not known.
		Since(zone string, serial uint32, v *zone.Zone) []*zone.Delta
	}
)

// ErrNotAuthoritative is the error of a Transferer that does not have the zone.
var ErrNotAuthoritative = errors.New("not authoritative for zone")

// Name implements plugin.Handler.
func (t *Transfer) Name() string { return "transfer" }

// TransferStatus implements status.Transfers.
func (t *Transfer) TransferStatus() []status.Transfer { return t.sent.List() }

// ServeWire implements plugin.WireHandler: transfers never come in the wire lane.
func (t *Transfer) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(t.Name(), t.Next, ctx, w, q)
}

// WireSelf implements plugin.WireHandler.
func (t *Transfer) WireSelf() plugin.Handler { return t }

// ServeDNS implements plugin.Handler.
func (t *Transfer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	qtype := state.QType()
	if qtype != dns.TypeAXFR && qtype != dns.TypeIXFR {
		return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
	}
	// A stream of QUIC carries a transfer, too (RFC 9250 §1).
	udp := state.Proto() == "udp" && !plugin.OverQUIC(ctx)
	if udp && qtype == dns.TypeAXFR { // RFC 5936 §4.2
		return dns.RcodeRefused, nil
	}
	name := state.Name()
	s := t.stanzaOf(name)
	if s == nil {
		return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
	}
	if client, err := netip.ParseAddr(state.IP()); err != nil || !s.allows(client) {
		return dns.RcodeRefused, nil
	}
	serial, err := serialOf(r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	o := &out{w: w, r: r, name: name, client: state.IP(), serial: serial, udp: udp, single: single(ctx), done: &t.sent}
	if code, err := t.answer(ctx, o); !errors.Is(err, ErrNotAuthoritative) {
		return code, err
	}
	// The turn is over: who comes next may take its time.
	return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
}

// answer sends the zone from the first that has it, when it is the client's turn. The error is ErrNotAuthoritative if none
// has.
func (t *Transfer) answer(ctx context.Context, o *out) (int, error) {
	switch {
	case plugin.OverQUIC(ctx):
		defer t.turns.take(o.w, atOnceQUIC)()
	case !o.udp && !o.single:
		defer t.turns.take(o.w, atOnceTCP)()
	}
	for _, from := range t.Transferers {
		err := t.send(o, from)
		if errors.Is(err, ErrNotAuthoritative) {
			continue
		}
		if err != nil {
			t.sent.Add(status.Transfer{Zone: o.name, Direction: "out", Peer: o.client, Error: err.Error()})
			if errors.Is(err, errSingle) { // as over UDP
				return dns.RcodeRefused, nil
			}
			return dns.RcodeServerFailure, plugin.Error(t.Name(), err)
		}
		return dns.RcodeSuccess, nil
	}
	return dns.RcodeServerFailure, ErrNotAuthoritative
}

// single reports whether a query came over HTTP or gRPC, where its reply is one message (RFC 8484 §6).
func single(ctx context.Context) bool {
	_, call := peer.FromContext(ctx)
	return call || ctx.Value(dnsserver.HTTPRequestKey{}) != nil
}

var errNoSerial = errors.New("an IXFR query needs one SOA record in its authority section")

// serialOf is what the client of a query has: nothing if it wants all.
func serialOf(r *dns.Msg) (*uint32, error) {
	if r.Question[0].Qtype == dns.TypeAXFR {
		return nil, nil
	}
	if len(r.Ns) != 1 {
		return nil, errNoSerial
	}
	soa, ok := r.Ns[0].(*dns.SOA)
	if !ok {
		return nil, errNoSerial
	}
	return &soa.Serial, nil
}

// send answers o with the zone that from has.
func (t *Transfer) send(o *out, from Transferer) error {
	if source, ok := from.(Source); ok {
		v, err := source.Version(o.name)
		if err != nil {
			return err
		}
		return o.version(v, t.since(o, source, v))
	}
	serial := uint32(0)
	if o.serial != nil {
		serial = *o.serial
	}
	if c, ok := from.(Changing); ok && o.udp { // who has its serial gets the SOA record, without a walk through the zone
		serial = cmp.Or(c.TransferSerials()[o.name], serial)
	}
	ch, err := from.Transfer(o.name, serial)
	if err != nil {
		return err
	}
	return o.records(ch)
}
