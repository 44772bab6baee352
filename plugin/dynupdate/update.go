package dynupdate

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/dynupdate/signing"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/tsig"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// serveUpdate answers an UPDATE. One for another zone is for another dynupdate of the block, and for nobody else: what
// stands below would not know who sent it.
func (d *DynUpdate) serveUpdate(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	by, _ := tsig.Validated(ctx)
	res := malformed
	packet := plugin.Packet(ctx) // nil if it is no listener of ours that has it
	if len(r.Question) == 1 && r.Question[0].Qtype == dns.TypeSOA && r.Question[0].Qclass == dns.ClassINET && (packet == nil || sound(packet)) {
		if dns.CanonicalName(r.Question[0].Name) != d.Zone {
			if next, ok := d.Next.(updater); ok {
				return next.ServeDNS(ctx, w, r)
			}
			res = result{answer: answer{rcode: dns.RcodeNotAuth}, failed: "it is for zone " + r.Question[0].Name}
		} else {
			metadata.SetValueFunc(ctx, "dynupdate/key", func() string { return by.Key })
			client, _ := netip.ParseAddr(state.IP())
			res = d.handle(r, by, client, updates.PositionOf(ctx))
		}
	}
	requests.WithLabelValues(plugin.Label(ctx), d.Zone, rcode.ToString(res.rcode)).Inc()
	d.told.of(d.Zone, d.quiet, by.Key, state.IP(), res)
	m := replyTo(r, res)
	m.Authoritative = true
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// replyTo is the answer to an UPDATE.
func replyTo(r *dns.Msg, res result) *dns.Msg {
	m := new(dns.Msg).SetRcode(r, res.rcode)
	m.RecursionDesired = r.RecursionDesired
	if opt := r.IsEdns0(); opt != nil {
		explain(m, opt, res)
	}
	return m
}

// explain adds an OPT record with the extended error of a refusal or a failure (RFC 8914).
func explain(m *dns.Msg, opt *dns.OPT, res result) {
	e := &dns.EDNS0_EDE{ExtraText: res.note}
	switch {
	case res.rcode == dns.RcodeRefused && res.note != "":
		e.InfoCode = dns.ExtendedErrorCodeProhibited
	case res.rcode == dns.RcodeServerFailure:
		e.InfoCode, e.ExtraText = dns.ExtendedErrorCodeOther, "database"
	default:
		return
	}
	m.SetEdns0(opt.UDPSize(), opt.Do())
	m.IsEdns0().Option = []dns.EDNS0{e}
}

// handle does what an UPDATE for the zone says, if its sender may.
func (d *DynUpdate) handle(r *dns.Msg, by tsig.Signature, client netip.Addr, at *updates.Position) result {
	if res, ok := d.admit(by.Key, client, r); !ok {
		return res
	}
	if d.store == nil {
		return failure(errClosed)
	}
	m := &message{by: by, prereqs: records(r.Answer), updates: records(r.Ns)}
	at.Await(context.Background()) // those before end: each has its time
	return d.change(m, at.End)
}

// admit looks at who sends an UPDATE, and how much it is, before anything of the zone is. It reports false for one that
// is refused.
func (s *settings) admit(key string, client netip.Addr, r *dns.Msg) (res result, ok bool) {
	switch n := len(r.Answer) + len(r.Ns); {
	case key == "":
		return refused("no signature"), false
	case !s.policy.from(client):
		return refused("no updates from this address"), false
	case !s.policy.knows(key):
		return refused("no permission for this key"), false
	case n > s.maxUpdate:
		return refused("%d records, at most %d are allowed", n, s.maxUpdate), false
	}
	return res, true
}

// failure is the result of what the database did not take.
func failure(err error) result {
	return result{answer: answer{rcode: dns.RcodeServerFailure}, err: err}
}

// change makes the changes of a message, or repeats what it was answered before. decided is called when the next one may
// be decided about; it is not if the database takes none.
func (d *DynUpdate) change(m *message, decided func()) (res result) {
	u := decision{message: m, d: d, now: uint32(time.Now().Unix())}
	noted := false
	note := func() { d.store.replays.add(m.by, res.answer); noted = true }
	do := func(c *zone.Change) (ok bool) {
		defer func() {
			if !ok {
				decided()
			}
		}()
		if before, ok := d.store.replays.find(m.by); ok {
			res = result{answer: before, again: true}
			return false
		}
		u.c = c
		if res, ok = u.run(); !ok {
			note()
		}
		return ok
	}
	check := func(next *zone.Zone, delta *zone.Delta) bool {
		defer decided()
		if res = d.within(next, delta); res.rcode == dns.RcodeSuccess {
			res = result{from: delta.From, to: delta.To}
			res.added, res.removed = d.counts(delta)
		}
		note()
		return res.rcode == dns.RcodeSuccess
	}
	var no *refusal
	switch err := d.store.update(do, check); {
	case errors.Is(err, errFrozen):
		return refused("the zone is frozen")
	case errors.As(err, &no):
		d.store.unanswered(m.by) // it may be done when the other zone has room
		return no.result
	case err != nil:
		if noted { // an earlier one may be durable, which is not to be done again
			d.store.unanswered(m.by)
		}
		return failure(err)
	}
	if !res.again {
		for why, n := range u.counts {
			ignored.WithLabelValues(d.Zone, why).Add(float64(n))
		}
		recordsChanged.WithLabelValues(d.Zone, "add").Add(float64(res.added))
		recordsChanged.WithLabelValues(d.Zone, "remove").Add(float64(res.removed))
	}
	return res
}

// counts is how many records a change adds and removes, without the SOA record, and without those that the signer will
// make anew.
func (s *settings) counts(delta *zone.Delta) (added, removed int) {
	if !s.signs() {
		return delta.Added - 1, delta.Removed - 1
	}
	w := delta.Walk()
	for n := range delta.Removed + delta.Added {
		switch rec, _ := w.Next(); {
		case signing.Manages(rec.Type) || rec.Type == dns.TypeSOA:
		case n < delta.Removed:
			removed++
		default:
			added++
		}
	}
	return added, removed
}

// within looks at a version before anybody sees it. What makes the zone no larger is always right.
func (s *settings) within(next *zone.Zone, delta *zone.Delta) result {
	switch records, octets := next.Unproved(); {
	case records > s.maxRecords && delta.Added > delta.Removed:
		return refused("the zone would have %d records, at most %d are allowed", records, s.maxRecords)
	case octets > s.maxBytes:
		return refused("the zone would have %d octets, at most %d are allowed", octets, s.maxBytes)
	}
	return result{}
}
