package secondary

import (
	"net/netip"
	"slices"
	"sync"
)

// notifiers is the addresses that notifications of a zone came from since it was looked at; they are those of primaries, so
// they are few. Any goroutine may use it.
type notifiers struct {
	mu  sync.Mutex
	all []netip.Addr
}

func (n *notifiers) add(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.all, a) {
		n.all = append(n.all, a)
	}
}

// take is all of them; from then on there are none.
func (n *notifiers) take() (all []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all, n.all = n.all, nil
	return all
}

// anyBut reports whether there is one that is not the address of a primary.
func (n *notifiers) anyBut(primary string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all) > 1 || len(n.all) == 1 && !isAt(primary, n.all)
}
