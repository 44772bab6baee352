package rewrite

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// ServeWire passes the query on as the rules make it. Queries for which a rule needs the message are unpacked.
func (rw Rewrite) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if p := rw.RevertPolicy; p != nil && !(p.DoRevert() && p.DoQuestionRestore()) {
		return wire.Unpack
	}
	p := rewritings.Get().(*rewriting)
	defer p.free()
	p.validated = rw.validated()
	mark := q.Mark()
	stopped := false
	for i := 0; i < len(rw.Rules) && !stopped; i++ {
		rule, ok := rw.Rules[i].(wireRule)
		if !ok { // not one of ours
			q.Restore(mark)
			return wire.Unpack
		}
		switch rule.rewriteWire(p, q) {
		case unpack:
			q.Restore(mark)
			return wire.Unpack
		case illegal:
			q.Restore(mark)
			if p.renamed { // nothing was looked up: logs tell the name as it came
				q.SetName(q.Name())
				q.Restore(mark)
			}
			w.Fail(wire.ServFail, invalidName(string(p.next)))
			return wire.Done
		case done:
			stopped = rule.Mode() == Stop
		}
	}
	out := plugin.NextWire(rw.Name(), rw.Next, ctx, w, q)
	q.Restore(mark)
	if out == wire.Done && (stopped || p.renamed || len(p.rules) > 0) {
		p.reply(w, q)
	}
	return out
}

// WireSelf returns rw.
func (rw Rewrite) WireSelf() plugin.Handler { return rw }

// rewriting is one query's way past the rules in the wire lane.
type rewriting struct {
	rules   ResponseRules // what is to be done with the reply; all are edits
	renamed bool          // the name that is looked up is another one

	validated bool // AD is what a validator found out, for the name that is looked up

	read    bool   // current is known
	current []byte // the name now, as presented, in lower case
	next    []byte // what a rule makes of it
	name    []byte // the same in wire form

	options, spare []byte   // EDNS options before and after a rule
	data           []byte   // what one option holds
	changed        []uint16 // codes of options that rules have changed for good

	remaps []*remap // used again and again
	used   int      // of remaps

	old oldReply
}

var rewritings = sync.Pool{New: func() any { return new(rewriting) }}

func (p *rewriting) free() {
	p.rules, p.renamed, p.read, p.used, p.changed = p.rules[:0], false, false, 0, p.changed[:0]
	rewritings.Put(p)
}

// text is q's name as presented, in lower case.
func (p *rewriting) text(q *wire.Query) []byte {
	if !p.read {
		p.read = true
		p.current = wire.AppendText(p.current[:0], q.Lower())
	}
	return p.current
}

// addRemap gathers that names of the reply that are from, as presented, become to, a name in wire form.
func (p *rewriting) addRemap(from, to []byte) {
	if p.used == len(p.remaps) {
		p.remaps = append(p.remaps, new(remap))
	}
	r := p.remaps[p.used]
	p.used++
	r.from, r.to = append(r.from[:0], from...), wire.AppendText(r.to[:0], to)
	p.rules = append(p.rules, r)
}
