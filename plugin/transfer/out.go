package transfer

import (
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

const (
	// messageSize is how long the messages of a transfer become, in octets: as far as pointers reach.
	messageSize = 16384
	// batchSize is how long the records of a message may be without compression where they come one by one.
	batchSize = 63000

	optSize = 11 // of an OPT record without options

	// singleSize is how long a message may be that is all there is: with an OPT record, and a signature.
	singleSize = wire.MaxMessage - 512
)

// errSingle is the error of a transfer that takes more messages than its client can get.
var errSingle = errors.New("it does not fit into the one message that HTTPS and gRPC carry")

// out is one transfer to a client.
type out struct {
	w      dns.ResponseWriter
	r      *dns.Msg
	name   string  // of the zone
	client string  // its address
	serial *uint32 // that it has, nil if it wants the whole zone
	udp    bool
	single bool                // the reply is one message
	done   *status.TransferLog // where it is noted at its end
}

// current reports whether the client has what we have, or newer (RFC 1995 §2); or has to be told our SOA record
// alone, so that it comes again over TCP.
func (o *out) current(serial uint32) bool {
	return o.serial != nil && (o.udp || !zone.Newer(serial, *o.serial))
}

// version sends a zone, or what changed since the client's if deltas has it.
func (o *out) version(v *zone.Zone, deltas []*zone.Delta) error {
	var q wire.Query
	if err := q.SetMsg(o.r, wire.PeerOf(o.w.RemoteAddr(), o.w.LocalAddr())); err != nil {
		return err
	}
	var walk *zone.Walk
	switch {
	case o.current(v.Serial()):
		walk = v.Increment(nil)
	case len(deltas) > 0:
		walk = v.Increment(deltas)
	default:
		walk = v.Transfer()
	}
	var reply wire.Reply
	size, records := messageSize-optSize, 0
	if o.single {
		size = singleSize
	}
	buf := make([]byte, size)
	for more := true; more; {
		reply.Reset(buf)
		reply.Begin(&q)
		reply.SetFlag(wire.FlagAA, true)
		more = walk.Fill(&reply, size)
		if more && o.single {
			return fmt.Errorf("transfer of %s to %s: %w", o.name, o.client, errSingle)
		}
		if more && len(reply.Recs()) == 0 {
			rec, _ := walk.Next()
			return fmt.Errorf("transfer of %s to %s: a %s record of %s with %d octets of data fits into no message",
				o.name, o.client, dns.Type(rec.Type), wire.Text(rec.Owner), len(rec.RData))
		}
		records += len(reply.Recs())
		if err := o.write(&reply); err != nil {
			return fmt.Errorf("transfer of %s to %s: %w", o.name, o.client, err)
		}
	}
	o.log(records, v.Serial(), o.current(v.Serial()))
	return nil
}

// write sends one message: as it lies there, unless a plugin above has to see a message, or it is signed, as nobody
// above signs.
func (o *out) write(reply *wire.Reply) error {
	if taken, err := plugin.TakeReply(o.w, reply, o.r); taken {
		return err
	}
	m, err := reply.Msg(o.r)
	if err != nil {
		return err
	}
	return o.writeMsg(m)
}

// records sends what comes from a channel, which it reads to its end whatever happens. Over UDP it sends the SOA record alone, as
// current has it: a zone in datagrams would be lost on its client, and is more than a query with a forged address may bring about.
func (o *out) records(ch <-chan []dns.RR) (err error) {
	defer func() {
		for range ch {
		}
	}()
	var first dns.RR
	var batch []dns.RR
	total, size := 0, 0
	flush := func() error {
		m := new(dns.Msg).SetReply(o.r)
		m.Authoritative, m.Answer, m.Compress = true, batch, true
		batch, size = nil, 0
		return o.writeMsg(m)
	}
	for rrs := range ch {
		for _, rr := range rrs {
			if first == nil {
				first = rr
			} else if o.udp {
				continue
			}
			if n := dns.Len(rr); size+n > batchSize && len(batch) > 0 {
				if o.single {
					return fmt.Errorf("transfer of %s to %s: %w", o.name, o.client, errSingle)
				}
				if err := flush(); err != nil {
					return fmt.Errorf("transfer of %s to %s: %w", o.name, o.client, err)
				}
				size = n
			} else {
				size += n
			}
			batch = append(batch, rr)
			total++
		}
	}
	soa, ok := first.(*dns.SOA)
	if !ok {
		if first == nil {
			return nil // nothing is written
		}
		return fmt.Errorf("transfer of %s to %s: the first record is no SOA record: %s", o.name, o.client, first)
	}
	if err := flush(); err != nil {
		return fmt.Errorf("transfer of %s to %s: %w", o.name, o.client, err)
	}
	o.log(total, soa.Serial, total == 1 && o.serial != nil)
	return nil
}

// writeMsg sends a message as it is, signed if the query is: now, as a client that reads slowly does not take what was
// signed long ago. From the second message on only the time is signed with it (RFC 8945 §5.3.1).
func (o *out) writeMsg(m *dns.Msg) error {
	t := o.r.IsTsig()
	if t == nil || o.w.TsigStatus() != nil {
		return o.w.WriteMsg(m)
	}
	keyring.Sign(m, t.Hdr.Name, t.Algorithm)
	err := o.w.WriteMsg(m)
	o.w.TsigTimersOnly(true)
	return err
}

func (o *out) log(records int, serial uint32, current bool) {
	if current {
		tlog.Infof("Outgoing noop, incremental transfer for up to date zone %q to %s for %d SOA serial", o.name, o.client, serial)
		return
	}
	if o.done != nil {
		o.done.Add(status.Transfer{Zone: o.name, Direction: "out", Peer: o.client, Serial: serial, Records: records})
	}
	tlog.Infof("Outgoing transfer of %d records of zone %q to %s for %d SOA serial", records, o.name, o.client, serial)
}
