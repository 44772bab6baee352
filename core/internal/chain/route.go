package chain

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// router finds the blocks that a name belongs to: those of the longest zone that the
// name is or lies below, then those of the next shorter one, and so on.
type router struct {
	zones wire.Suffixes[*siblings]
	views map[*block][]WireViewer // of blocks whose Viewers all are such
	many  bool                    // there are zones whose blocks are looked up by the client's address, too
}

// WireViewer is a Viewer that can also decide on a query that is not unpacked.
type WireViewer interface {
	Viewer
	// FilterWire is Filter for q, which it does not keep. It is not sure if it takes the message to know; the query is
	// unpacked then. ctx is that of the block in the wire lane.
	FilterWire(ctx context.Context, q *wire.Query) (belongs, sure bool)
}

// newRouter is a router to blocks, whose filters may change until the first query.
func newRouter(blocks []*block) (*router, error) {
	r := &router{views: map[*block][]WireViewer{}}
	for _, b := range blocks {
		r.views[b] = wireViewers(b)
		name, err := wire.LowerName(b.Zone)
		if err != nil {
			return nil, err
		}
		same, ok := r.zones.Get(name)
		if !ok {
			same = new(siblings)
			r.zones.Set(name, same)
		}
		same.blocks = append(same.blocks, b)
		r.many = r.many || len(same.blocks) > fewBlocks
	}
	return r, nil
}

// route finds the block for a query: of the longest zone that has a block which takes it. A DS query belongs to the
// parent's side of a zone cut (RFC 4035 §3.1.4.1): the closest zone above the name goes before the name's own, but the
// root only if there is no other.
func (r *router) route(q question, takes func(*block) bool) *block {
	var way wire.Climb[*siblings]
	way.Start(&r.zones, q.name)
	var own *block
	for {
		same, before, ok := way.Next()
		// The zone of the name itself answers if there is none above it but the root.
		if !ok || way.AtRoot() && own != nil {
			return own
		}
		var found *block
		same.each(r.views, q.client, q.name, func(b *block) bool {
			if takes(b) {
				found = b
			}
			return found != nil
		})
		switch {
		case found == nil:
		case !q.ds || before > 0 || way.AtRoot():
			return found
		default:
			own = found
		}
	}
}

// find is route for a query that is not unpacked. It reports false if a block has to look at the message before it
// is known whose the query is.
func (r *router) find(q *wire.Query) (*block, bool) {
	sure := true
	b := r.route(questionOf(q), func(b *block) bool {
		if len(*b.Filters) == 0 {
			return true
		}
		belongs, known := r.filter(b, q)
		sure = sure && known
		return belongs || !known // what comes behind a block that is not sure does not count
	})
	return b, sure
}

// filter asks a block's views whether a query belongs to it.
func (r *router) filter(b *block, q *wire.Query) (belongs, sure bool) {
	views := r.views[b]
	if len(views) != len(*b.Filters) || b.left.Load() {
		return false, false // there are filters that want a message
	}
	returned := false
	defer func() {
		if !returned {
			b.leaveWire()
		}
	}()
	for _, v := range views {
		if belongs, sure = v.FilterWire(b.ctx, q); !belongs || !sure {
			break
		}
	}
	returned = true
	return belongs, sure
}

// wireViewers is the WireViewers of a block's chain. As with ServeWire, a handler that has its FilterWire from one
// that it embeds is none.
func wireViewers(b *block) (views []WireViewer) {
	for _, h := range b.chain {
		if v, ok := messageOnly(h).(interface {
			WireViewer
			plugin.WireHandler
		}); ok {
			views = append(views, v)
		}
	}
	return views
}
