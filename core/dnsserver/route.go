package dnsserver

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// router finds the blocks that a name belongs to: those of the longest zone that the
// name is or lies below, then those of the next shorter one, and so on.
type router struct {
	zones  map[string][]*block // by zone as a lower name in wire form; blocks of one zone in file order
	depths [128]bool           // there is a zone of so many labels
}

func newRouter(blocks []*block) (*router, error) {
	r := &router{zones: map[string][]*block{}}
	for _, b := range blocks {
		name, err := wire.LowerName(b.Zone)
		if err != nil {
			return nil, err
		}
		r.zones[string(name)] = append(r.zones[string(name)], b)
		r.depths[wire.CountLabels(name)] = true
	}
	return r, nil
}

// walk is the way of one query up from its name to the root.
type walk struct {
	r    *router
	name []byte
	offs [128]uint8
	n    int // labels of the name
	i    int // the next suffix to look at begins with label i
}

// start begins a walk for a lower name, which must stay as it is meanwhile.
func (w *walk) start(r *router, name []byte) {
	w.r, w.name, w.i = r, name, 0
	w.n = wire.LabelOffsets(name, &w.offs)
}

// next is the blocks of the next shorter zone that is served; exact says that the zone
// is the name itself, root that it is the root. Without blocks the walk has ended.
func (w *walk) next() (blocks []*block, exact, root bool) {
	for ; w.i <= w.n; w.i++ {
		labels := w.n - w.i
		if !w.r.depths[labels] {
			continue
		}
		off := len(w.name) - 1
		if labels > 0 {
			off = int(w.offs[w.i])
		}
		if bs, ok := w.r.zones[string(w.name[off:])]; ok {
			w.i++
			return bs, w.i == 1 || w.n == 0, labels == 0
		}
	}
	return nil, false, false
}

// route finds the block for a lower name: of the longest zone that has a block
// which takes the query. A DS query belongs to the parent's side of a zone cut (RFC 4035 §3.1.4.1): the
// closest zone above the name goes before the name's own, but the root only if there is no other.
func (r *router) route(name []byte, ds bool, takes func(*block) bool) *block {
	var w walk
	w.start(r, name)
	var own *block
	for {
		blocks, exact, root := w.next()
		if blocks == nil || root && own != nil {
			return own
		}
		for _, b := range blocks {
			if !takes(b) {
				continue
			}
			if !ds || !exact || root {
				return b
			}
			own = b
			break
		}
	}
}
