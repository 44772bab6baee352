// Package status is what plugins tell of themselves to those who operate the server.
//
//	plugin ──implements Zones, Upstreams or Cache──▶ control ──▶ tables, JSON
//
// A plugin implements those of the interfaces that fit, and knows nothing of who asks. All methods may be called by any
// goroutine at any time after the plugin has started, and take as long as it takes to look; none of them waits for the
// network. Start at Zones.
package status

import "time"

// Zones is a plugin that serves zones.
type Zones interface {
	// ZoneStatus tells of all zones of the plugin, in any order.
	ZoneStatus() []Zone
}

// Zone is what there is to tell of a zone.
type Zone struct {
	Name    string    `json:"name"`              // fully qualified, in lower case
	Plugin  string    `json:"plugin"`            // which serves it
	Source  string    `json:"source,omitempty"`  // file or primaries
	Loaded  bool      `json:"loaded"`            // there is something to serve
	Expired bool      `json:"expired,omitempty"` // it is too old to be served (RFC 1035 §3.3.13)
	Frozen  bool      `json:"frozen,omitempty"`  // updates are refused, as somebody asked for
	Serial  uint32    `json:"serial"`            // of its SOA record
	Records int       `json:"records"`           // how many it has
	Since   time.Time `json:"since,omitzero"`    // when this version came
	Refresh time.Time `json:"refresh,omitzero"`  // when its source is looked at next
	Expires time.Time `json:"expires,omitzero"`  // when it expires unless its primary is reached before
	Failure string    `json:"failure,omitempty"` // why it could not be read or fetched the last time
	Failing time.Time `json:"failing,omitzero"`  // since when it could not
}

// Freezer is a plugin that serves zones which clients change.
type Freezer interface {
	// FreezeZone has updates of a zone refused from now on, or taken again. name is fully qualified and in lower case.
	// It reports false if the plugin has no such zone.
	FreezeZone(name string, on bool) bool
}

// Upstreams is a plugin that asks other servers.
type Upstreams interface {
	// UpstreamStatus tells of all upstreams, in the order of the Corefile.
	UpstreamStatus() []Upstream
}

// Upstream is what there is to tell of a server that is asked.
type Upstream struct {
	Plugin   string  `json:"plugin"`                 // which asks it
	From     string  `json:"from"`                   // zones for which it is asked
	Address  string  `json:"address"`                // with its port
	Protocol string  `json:"protocol"`               // dns, tls, https, ...
	Down     bool    `json:"down"`                   // it has failed so many health checks that others go before
	Fails    uint32  `json:"fails"`                  // health checks that failed in a row
	Smooth   float64 `json:"smoothMs,omitempty"`     // milliseconds until a reply, smoothed; 0 if that is not measured
	Requests uint64  `json:"requests,omitempty"`     // queries that it answered; filled in by who has the metrics
	Errors   uint64  `json:"errors,omitempty"`       // of these, with SERVFAIL or REFUSED
	Mean     float64 `json:"meanMs,omitempty"`       // milliseconds until a reply, of all requests
	Checks   uint64  `json:"failedChecks,omitempty"` // health checks that failed, in all
}

// Cache is a plugin that keeps answers.
type Cache interface {
	// CacheEntries calls f with each answer that m fits, until f returns false. Answers that are stored meanwhile may
	// be missed.
	CacheEntries(m Match, f func(CacheEntry) bool)
	Flusher
	// CacheStatus is how much is kept.
	CacheStatus() CacheStatus
}

// Flusher keeps answers, or what they follow from.
type Flusher interface {
	// CacheFlush forgets the answers that m fits, and returns how many there were. A query that comes after it misses.
	CacheFlush(m Match) int
}

// Match says which answers are meant.
type Match struct {
	Name  []byte // lower, in wire form; the root with Below fits all
	Below bool   // names below Name, too
	Type  uint16 // 0 is any
}

// CacheStatus is how much a cache keeps.
type CacheStatus struct {
	Zones     []string `json:"zones"` // whose names it is for
	View      string   `json:"view,omitempty"`
	Answers   int      `json:"answers"`   // answers with data
	Denials   int      `json:"denials"`   // answers that there is no such name or data, and failures
	Octets    int64    `json:"octets"`    // memory that they take
	MaxOctets int64    `json:"maxOctets"` // that the caches of the process may take
}

// CacheEntry is an answer that is kept.
type CacheEntry struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Class   string `json:"class"`
	Rcode   string `json:"rcode"`
	Answer  int    `json:"answer"`            // records of the answer section
	TTL     int    `json:"ttl"`               // seconds that are left; below 0 it is stale
	DO      bool   `json:"do,omitempty"`      // for clients that ask for DNSSEC records
	CD      bool   `json:"cd,omitempty"`      // for clients that want no checks
	Network string `json:"network,omitempty"` // of the clients that it is for, if not for all
	Octets  int64  `json:"octets"`
}

// DefaultSocket is where the plugin control has its socket, and coredns ctl looks for it, if nobody says otherwise.
const DefaultSocket = "/run/coredns/control.sock"
