package cache

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var (
	_ readahead.Table    = &Cache{}
	_ plugin.WireHandler = &Cache{}
)

// TestReadAhead: a cache becomes large, and what is read ahead is the entry of the question, as far as its hash tells.
func TestReadAhead(t *testing.T) {
	stored := func() *Cache {
		c, b := New(), unbounded()
		c.prepare()
		c.stores = &stores{positive: newStore(2*manyEntries, b, 0), negative: newStore(2*manyEntries, b, 1), owner: c}
		return c
	}
	c := stored()
	if c.Large() {
		t.Error("an empty cache is large")
	}
	q := new(wire.Query)
	ask := func(i int) *entry {
		q.SetMsg(new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.org.", i), dns.TypeA), wire.Peer{})
		k := c.questionOf(q)
		return c.positive.shard(k.hash).table.Load().findHash(k.hash)
	}
	for i := range manyEntries + 1 {
		q.SetMsg(new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.org.", i), dns.TypeA), wire.Peer{})
		k := c.questionOf(q)
		k.name = append([]byte(nil), k.name...)
		c.positive.add(entryOf(k.key))
	}
	if !c.Large() || !c.positive.large.Load() || c.negative.large.Load() {
		t.Fatalf("a cache of %d answers is not large", c.positive.len())
	}
	denials := stored()
	for i := range manyEntries + 1 {
		denials.negative.add(testEntry(i))
	}
	if !denials.Large() || denials.positive.large.Load() {
		t.Errorf("a cache of %d denials is not large", denials.negative.len())
	}
	for i := range manyEntries + 100 {
		e := ask(i)
		if (e != nil) != (i <= manyEntries) {
			t.Fatalf("n%d: got %v", i, e)
		}
		for left := readahead.First; left > 0; left-- {
			c.ReadAhead(q, left, nil)
		}
		if e != nil && !e.is(&[]key{c.questionOf(q).key}[0]) {
			t.Fatalf("n%d: the entry is of another question", i)
		}
	}
}
