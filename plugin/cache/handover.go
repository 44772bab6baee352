package cache

import (
	"crypto/sha256"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"github.com/coredns/caddy"
)

// What is kept survives a reload, if the cache that comes would have been told the same: the block's keys, its stanza and those of the plugins
// below it are the same text, so are the files that they name, and all of these plugins are known, so that nothing else decides what they answer.
// An alias may have led them to another server block: answers with one survive only if all blocks and their files are the same. So do all answers of
// a block that asks other blocks by their addresses.
//
//	old: OnRestart, offers its stores ──▶ new: OnStartup, takes them ──▶ old: OnShutdown, they are not its own any more
//	                                           └─ start fails ──▶ old: OnRestartFailed, takes them back
//
// Meanwhile both caches serve from the same stores.

// stores are the entries of a cache.
type stores struct {
	positive, negative *store

	owner   *Cache       // who clears them at its end; guarded by offers
	flushed atomic.Int64 // the moment when somebody flushed last; 0 is never

	around atomic.Pointer[string] // of the owner; nil if nobody has taken over
}

// leads reports whether aliases lead where c thinks: a later cache that has taken over may have another Corefile.
func (c *Cache) leads() bool {
	now := c.stores.around.Load()
	return now == nil || *now == c.around
}

// offers are the stores of an instance that is being replaced, by the text that is to be the same.
var offers struct {
	sync.Mutex
	all map[string]*stores
}

// offer makes what c keeps the next one's, if it is of the same text.
func (c *Cache) offer() {
	c.prepare()
	offers.Lock()
	defer offers.Unlock()
	if c.text == "" {
		return
	}
	if offers.all == nil {
		offers.all = map[string]*stores{}
	}
	offers.all[c.text] = c.stores
}

// takeOver takes what the one before offers, if anything. It comes before prepare.
func (c *Cache) takeOver() {
	offers.Lock()
	s := offers.all[c.text]
	var before *Cache
	if s != nil {
		before, s.owner = s.owner, c
		s.around.Store(&c.around)
		delete(offers.all, c.text)
	}
	c.stores = s
	offers.Unlock()
	c.prepare()
	if before != nil {
		c.dropLed(before)
		c.showLike(before)
	}
}

// dropLed lets answers with an alias go if the Corefile is another one than before's.
func (c *Cache) dropLed(before *Cache) {
	if c.around == before.around {
		return
	}
	led := func(e *entry) bool { return e.led }
	for at := range shards {
		c.positive.sweep(at, led)
		c.negative.sweep(at, led)
	}
}

// takeBack ends an offer, as nobody comes to replace c. Who has come meanwhile has failed.
func (c *Cache) takeBack() {
	c.prepare()
	offers.Lock()
	delete(offers.all, c.text)
	before := c.stores.owner
	c.stores.owner = c
	c.stores.around.Store(&c.around)
	offers.Unlock()
	if before != c {
		before.stopSweeping()
		c.showLike(before)
	}
}

// giveUp clears what c keeps, unless it is another one's now.
func (c *Cache) giveUp() {
	c.prepare()
	offers.Lock()
	if offers.all[c.text] == c.stores {
		delete(offers.all, c.text)
	}
	owner := c.stores.owner
	offers.Unlock()
	if owner == c {
		c.positive.clear()
		c.negative.clear()
	}
	c.hideEntries()
}

// observers are the directives that have no part in what is answered: they may change.
var observers = []string{"debug", "health", "pprof", "prometheus", "ready", "reload", "trace", "errors", "log", "dnstap"}

// textOf is what the block that c sets up says of what a cache in it may be told.
func textOf(c *caddy.Controller) string {
	var b strings.Builder
	for _, key := range c.ServerBlockKeys {
		b.WriteString(key + "\n")
	}
	for _, directive := range dnsserver.Directives {
		stanza := dnsserver.Stanza(c, directive)
		if stanza == "" || slices.Contains(observers, directive) {
			continue
		}
		b.WriteString(stanza + "\n")
		if slices.Contains(readers, directive) {
			describeFiles(&b, dnsserver.GetConfig(c).Root, stanza)
		}
	}
	return b.String()
}

// aroundOf is what all blocks say.
func aroundOf(c *caddy.Controller) string {
	return once(c, "cache/around", func() string {
		h := sha256.New()
		for _, block := range dnsserver.Blocks(c) {
			io.WriteString(h, textOf(&block))
		}
		return string(h.Sum(nil))
	})
}

// once is what find finds, which is the same for all blocks: a Corefile may have thousands, and find looks at all of them.
func once[T any](c *caddy.Controller, key string, find func() T) T {
	found, ok := c.Get(key).(T)
	if !ok {
		found = find()
		c.Set(key, found)
	}
	return found
}

// module is the path of our packages.
var module = strings.TrimSuffix(reflect.TypeFor[Cache]().PkgPath(), "plugin/cache")

// allOurs reports whether all plugins of a chain below c are ours.
func (c *Cache) allOurs(chain []plugin.Handler) bool {
	at := slices.Index(chain, plugin.Handler(c))
	if at < 0 {
		return false
	}
	for _, h := range chain[at+1:] {
		t := reflect.TypeOf(h)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), module) {
			return false
		}
	}
	return true
}
