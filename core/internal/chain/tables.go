package chain

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/readahead"
)

// LargeTables implements service.Decider. A handler that has the methods of a table from one that it embeds is none.
func (c *Chain) LargeTables(to []readahead.Table) []readahead.Table {
	for _, b := range c.blocks {
		if b.wire == nil || b.left.Load() {
			continue
		}
		for _, t := range b.tables {
			if len(to) < readahead.MostTables && t.Large() {
				to = append(to, t)
			}
		}
	}
	return to
}

// tablesOf is the tables of a chain.
func tablesOf(handlers []plugin.Handler) (tables []readahead.Table) {
	for _, h := range handlers {
		if t, ok := messageOnly(h).(interface {
			readahead.Table
			plugin.WireHandler
		}); ok {
			tables = append(tables, t)
		}
	}
	return tables
}
