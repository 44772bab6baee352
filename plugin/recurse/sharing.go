package recurse

import "sync"

// This file lets stanzas of equal text share a resolver: those of several server blocks, and those before and after
// a reload, which begins with the new ones. So a reload that does not concern recurse forgets nothing and loses no
// query.

var shared = struct {
	mu  sync.Mutex
	all map[string]*sharing // by text
}{all: map[string]*sharing{}}

type sharing struct {
	resolver *resolver
	users    int
}

// take is the resolver of a text: one that is there, or a new one, which is started.
func take(text string, make func() *resolver) *resolver {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	s := shared.all[text]
	if s == nil {
		s = &sharing{resolver: make()}
		shared.all[text] = s
		s.resolver.start()
	}
	s.users++
	return s.resolver
}

// give gives the resolver of a text back, and stops it if nobody else has it.
func give(text string) {
	shared.mu.Lock()
	s := shared.all[text]
	if s == nil {
		shared.mu.Unlock()
		return
	}
	if s.users--; s.users > 0 {
		shared.mu.Unlock()
		return
	}
	delete(shared.all, text)
	shared.mu.Unlock()
	s.resolver.stop()
}
