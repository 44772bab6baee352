package zone

import "errors"

const (
	sweepNodes = 8        // that each change moves, and twice as many as it changed
	sweepFrom  = 64 << 10 // octets of holes that are worth it
)

// sweep moves some nodes out of a chunk with holes, and lets go of it when none is left.
func (c *Change) sweep() error {
	z, g := c.now, c.now.grown
	// Twice as many as were changed, so that sweeping is never slower than holes come.
	for n := sweepNodes + 2*len(c.order); n > 0; n-- {
		if g.moving < 0 && !c.choose() {
			return nil
		}
		chunk := z.chunks[g.moving]
		if g.live[g.moving] == 0 || g.moved >= len(chunk) {
			if g.live[g.moving] != 0 {
				return errors.New("a chunk of nodes is not as it was counted")
			}
			z.chunks[g.moving], g.moving = nil, -1
			if len(z.chunks[0]) == 0 {
				z.first = nil
			}
			continue
		}
		// Nodes stand in a chunk one behind the other, those that were replaced, too: the index tells which is which.
		node := Node(chunk[g.moved:])
		size := node.size()
		place := uint32(g.moving)<<chunkBits | uint32(g.moved)
		g.moved += size
		err := error(nil)
		switch {
		case z.place(node.prefix()) == place:
			err = c.put(node[:size:size])
		case g.hashed > 0 && z.hashPlace(node.prefix()) == place:
			err = c.putHash(node[:size:size])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose finds the chunk with the most holes, if holes are more than half of what is needed.
func (c *Change) choose() bool {
	z, g := c.now, c.now.grown
	live, most, at := 0, 0, -1
	for i, chunk := range z.chunks {
		live += g.live[i]
		if holes := len(chunk) - g.live[i]; i != g.open && chunk != nil && holes > most && 2*holes > len(chunk)/2 {
			most, at = holes, i
		}
	}
	if holes := z.held() - live; at < 0 || holes < sweepFrom || holes < live/2 {
		return false
	}
	g.moving, g.moved = at, 0
	if at == 0 {
		g.moved = 1 // nothing stands at place 0
	}
	return true
}
