package recurse

import (
	"fmt"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// This file lets stanzas of equal text share a resolver: those of several server blocks, and those before and after
// a reload, which begins with the new ones. So a reload that does not concern recurse forgets nothing and loses no
// query. One whose text has changed begins with what was known of servers and of the root: it need not find out anew who
// is silent.

var shared = struct {
	mu  sync.Mutex
	all map[string]*sharing // by text
}{all: map[string]*sharing{}}

// identity is the text by which a stanza is told from others: dnsserver.Identity and its hints, whose file may have been
// changed in place.
func (s *settings) identity(text string) string {
	if s.hints != nil {
		text += fmt.Sprintf("\n%q", s.hints.Hosts)
	}
	return text
}

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
		for _, o := range shared.all {
			s.resolver.inherit(o.resolver)
		}
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

// inherit takes over what a resolver knows that served the same server block before: of servers, and of the root if both
// begin with the same hints. r has not started.
func (r *resolver) inherit(o *resolver) {
	if r.counts.server != o.counts.server {
		return
	}
	mine, theirs := r.conf.Stores, o.conf.Stores
	mine.Servers.Inherit(&theirs.Servers, r.peerOf)
	same := slices.EqualFunc(r.conf.Hints.Hosts, o.conf.Hints.Hosts, func(a, b store.Host) bool {
		return a.Name == b.Name && slices.Equal(a.Addrs, b.Addrs)
	})
	if root := theirs.Delegations.Get(rrset.Root, o.now()); root != nil && same {
		mine.Delegations.Put(root, r.now())
		r.conf.Shared.Inherit(o.conf.Shared)
	}
}
