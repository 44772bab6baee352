package dnsserver

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// router finds the blocks that a name belongs to: those of the longest zone that the
// name is or lies below, then those of the next shorter one, and so on.
type router struct {
	zones wire.Suffixes[[]*block] // blocks of one zone in file order
}

func newRouter(blocks []*block) (*router, error) {
	r := &router{}
	for _, b := range blocks {
		name, err := wire.LowerName(b.Zone)
		if err != nil {
			return nil, err
		}
		same, _ := r.zones.Get(name)
		r.zones.Set(name, append(same, b))
	}
	return r, nil
}

// route finds the block for a lower name: of the longest zone that has a block
// which takes the query. A DS query belongs to the parent's side of a zone cut (RFC 4035 §3.1.4.1): the
// closest zone above the name goes before the name's own, but the root only if there is no other.
func (r *router) route(name []byte, ds bool, takes func(*block) bool) *block {
	var way wire.Climb[[]*block]
	way.Start(&r.zones, name)
	var own *block
	for {
		blocks, before, ok := way.Next()
		if !ok || way.AtRoot() && own != nil {
			return own
		}
		for _, b := range blocks {
			if !takes(b) {
				continue
			}
			if !ds || before > 0 || way.AtRoot() {
				return b
			}
			own = b
			break
		}
	}
}

// find is route for a query that is not unpacked. It reports false if a block has to look at the message before it is known whose
// the query is.
func (r *router) find(name []byte, ds bool) (*block, bool) {
	sure := true
	b := r.route(name, ds, func(b *block) bool {
		sure = sure && len(b.FilterFuncs) == 0
		return true
	})
	return b, sure
}
