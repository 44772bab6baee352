package control

import "sync"

// state is what the observers of a socket know. A reload hands it on.
type state struct {
	counts bool // queries are counted
	tops   tops
	tails  tails

	users int // guarded by states
}

// states is the states by the address of their socket.
var states struct {
	sync.Mutex
	all map[string]*state
}

// useState is the state of an address; leaveState gives it back. The last one to leave it ends it.
func useState(addr string, counts bool) *state {
	states.Lock()
	defer states.Unlock()
	s := states.all[addr]
	if s == nil || s.counts != counts {
		s = &state{counts: counts}
		if states.all == nil {
			states.all = map[string]*state{}
		}
		states.all[addr] = s
	}
	s.users++
	return s
}

func leaveState(addr string, s *state) {
	states.Lock()
	defer states.Unlock()
	if s.users--; s.users == 0 && states.all[addr] == s {
		delete(states.all, addr)
		s.tails.end()
	}
}
