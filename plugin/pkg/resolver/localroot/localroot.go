// Package localroot keeps a copy of the root zone, which answers in place of the root's servers (RFC 8806).
//
//	sources.go: transfer, URL, file ──zone──▶ keep.go: is it the root's own? ──▶ Copy ◀──Has, Reply── iterate.Run
//
// A zone that is not proven to be whole and the root's own is refused, and one that is older than
// its SOA record allows is used no more. Then there is no copy, and who asks turns to the root's
// servers. So nothing fails for the sake of a copy.
//
// Has and Reply may be called by any number of goroutines, and do not wait; Run is one goroutine's.
// The package asks nobody who signs what: that is an advice.Examiner's. Start at Copy.
package localroot

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// Logger is told of each change.
type Logger interface {
	Infof(format string, v ...any)
	Warningf(format string, v ...any)
}

// Copy is the root zone, as the first of its sources that can give it has it. The fields do not
// change once Run is called. Now is the clock by which a zone expires.
type Copy struct {
	Sources []Source
	Now     func() time.Time
	Log     Logger
	// Changed is told the serial of each version that is used, and 0 when there is none any more. It may be nil.
	Changed func(serial uint32)

	examiner atomic.Pointer[advice.Examiner]
	current  atomic.Pointer[version]

	keeping keeping // belongs to Run
}

// version is a zone that is used until its end.
type version struct {
	zone *zone.Zone
	end  time.Time
}

// SetExaminer has signatures checked by e from now on. While there is none, which is nil, the zone has to have
// a digest, and that has to do.
func (c *Copy) SetExaminer(e advice.Examiner) {
	if e == nil {
		c.examiner.Store(nil)
		return
	}
	c.examiner.Store(&e)
}

// Has reports whether there is a copy that may be used.
func (c *Copy) Has() bool { return c.live() != nil }

func (c *Copy) live() *zone.Zone {
	v := c.current.Load()
	if v == nil || !c.Now().Before(v.end) {
		return nil
	}
	return v.zone
}

// Reply is what a server of the root would reply to a question with DO set: an answer, a denial, or
// a referral. It is nil if there is no copy, or it has no answer of its own. name is in wire form and
// lower case.
func (c *Copy) Reply(name string, typ uint16) *rrset.Message {
	z := c.live()
	if z == nil {
		return nil
	}
	return reply(z, name, typ)
}

// asking is what one answer needs. It is some kilobytes of buffers, and so is used again.
type asking struct {
	answerer zone.Answerer
	query    wire.Query
	reply    wire.Reply
	packet   []byte
	room     []byte
}

var askings = sync.Pool{New: func() any { return &asking{room: make([]byte, 4096)} }}

// free gives a back. It keeps no version of the zone in memory until it is used again.
func (a *asking) free() {
	a.answerer.Release()
	askings.Put(a)
}

// reply is Reply for a zone. The answer goes the same way as one from the network, by octets: so what
// is believed of it is decided in one place.
func reply(z *zone.Zone, name string, typ uint16) *rrset.Message {
	a := askings.Get().(*asking)
	defer a.free()
	b := append(a.packet[:0], 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1)
	b = append(b, name...)
	b = binary.BigEndian.AppendUint16(b, typ)
	b = append(b, 0, wire.ClassIN, 0, 0, wire.TypeOPT, 0xff, 0xff, 0, 0, wire.OPTFlagDO>>8, 0, 0, 0)
	a.packet = b
	if !a.query.Parse(b) {
		return nil
	}
	a.reply.Reset(a.room)
	if a.answerer.Answer(z, &a.reply, &a.query) == zone.External {
		return nil
	}
	m, err := rrset.Parse(a.reply.Finish(&a.query, wire.MaxMessage))
	if err != nil {
		return nil
	}
	return m
}
