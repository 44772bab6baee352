// Package cache keeps answers that come from the plugins below and gives them again.
//
//	query ──▶ lookup ──hit──▶ reply from the packed entry
//	             │ miss, or ended
//	             ▼
//	          next plugin ──▶ ResponseWriter ──classify──▶ store ──▶ client
//
// Entries are packed replies; both lanes read the same ones. Positive answers and denials
// are kept in two stores, each bounded in entries, and both in the octets that they use.
// Any number of goroutines may serve with a Cache; readers take no lock.
//
// Where to go:
//
//   - a query: cache.go; entry.go and entrymem.go (what is kept), miss.go and misswire.go (the plugins below are
//     asked, in either lane), flight.go (those that miss the same wait for one another), bypass.go (zones that are
//     not kept).
//   - a reply: classify.go (whether it is kept, and for how long), network.go and variants.go (for whom), ede.go,
//     failure.go (that nobody answered).
//   - what is old: refresh.go and wirerefresh.go fetch it again, or give it as it is; setupstale.go has the
//     options.
//   - the store: store.go, table.go, queue.go and costclass.go (what goes first: S3-FIFO), sweep.go (what has
//     ended), budget.go and want.go (octets), ahead.go.
//   - a configuration: settings.go, zones.go, life.go, handover.go, files.go and neighbours.go (what the next one takes over),
//     lazy.go.
//
// Start at Cache.ServeDNS.
package cache
