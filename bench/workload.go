package main

import (
	"io"
	"math/rand/v2"
)

// workload is one kind of work that servers are compared at.
type workload struct {
	name      string
	corefile  string
	origin    string // of the zone that the server loads, empty if none
	zone      func(w io.Writer) error
	upstreams int    // how many servers there are to forward to
	stub      string // the zone that they are authorities for, empty if they are resolvers
	signed    bool   // that zone is, and answers are validated
	beside    *besides
	tcp       bool
	log       bool
	warm      int      // queries sent before the first round, by all clients together
	peers     []string // products that can do it
	probe     string   // a name with an address; once it is answered the server is ready
	// queries is called once a workload and returns the sources of a round's clients.
	queries func(rnd *rand.Rand) func(round, client, clients int) source
}

// sizes is how much data the workloads have.
type sizes struct {
	smallNames, largeNames, hitNames, services int
	flatQueries, largeQueries, walks           int
}

var fullSizes = sizes{
	smallNames: 1000, largeNames: 500_000, hitNames: 10_000, services: 5000,
	flatQueries: 20_000, largeQueries: 400_000, walks: 4000,
}

var (
	primaries  = []string{"coredns", "knotd", "nsd"}
	forwarders = []string{"coredns", "unbound", "dnsdist"}
	ourselves  = []string{"coredns"}
)

// workloads returns all workloads in the order in which they are run.
func workloads(s sizes) []workload {
	small := workload{
		corefile: "auth.corefile", origin: smallOrigin, peers: primaries, probe: flatName(0) + "." + smallOrigin,
		zone: func(w io.Writer) error { return flatZone(w, smallOrigin, s.smallNames) },
		queries: listed(func(rnd *rand.Rand) *queryList {
			return flatQueries(smallOrigin, s.smallNames, s.flatQueries, rnd)
		}),
	}
	authSmall, tcp, log := small, small, small
	authSmall.name = "auth-small"
	tcp.name, tcp.tcp = "tcp", true
	log.name, log.log, log.peers = "log", true, ourselves
	return append([]workload{
		authSmall,
		{
			name: "auth-large", corefile: "auth.corefile", origin: largeOrigin, peers: primaries,
			probe: flatName(0) + "." + largeOrigin,
			zone:  func(w io.Writer) error { return flatZone(w, largeOrigin, s.largeNames) },
			queries: listed(func(rnd *rand.Rand) *queryList {
				return flatQueries(largeOrigin, s.largeNames, s.largeQueries, rnd)
			}),
		},
		{
			name: "cache-hit", corefile: "cache.corefile", upstreams: 1, peers: forwarders,
			probe: flatName(0) + "." + hitOrigin, warm: 2 * s.hitNames,
			queries: listed(func(rnd *rand.Rand) *queryList { return warmQueries(hitOrigin, s.hitNames, rnd) }),
		},
		fresh("cache-miss", "cache.corefile", 1, 1),
		fresh("cache-miss-15", "cache.corefile", 15, 1),
		fresh("cache-miss-stanzas", "stanzas.corefile", 1, stanzas),
		{
			name: "k8s", corefile: "cluster.corefile", origin: clusterOrigin, upstreams: 1, peers: ourselves,
			probe:   serviceName(0) + "." + clusterOrigin,
			zone:    func(w io.Writer) error { return clusterZone(w, s.services) },
			queries: listed(func(rnd *rand.Rand) *queryList { return clusterQueries(s.services, s.walks, rnd) }),
		},
		tcp,
		log,
	}, recursion(s)...)
}

// stanzas is how many zones are forwarded one by one.
const stanzas = 10

// fresh is a workload in which each name is new. The names are in turns below so many zones.
func fresh(name, corefile string, upstreams, zones int) workload {
	w := workload{
		name: name, corefile: corefile, upstreams: upstreams, peers: forwarders, probe: "probe." + missOrigin,
		queries: func(*rand.Rand) func(round, client, clients int) source {
			return func(round, client, _ int) source { return newFreshNames(round, client, missZones(zones)...) }
		},
	}
	if upstreams*zones > 1 {
		w.peers = ourselves
	}
	return w
}

// listed makes clients go through one list, each from a place of its own.
func listed(list func(*rand.Rand) *queryList) func(*rand.Rand) func(round, client, clients int) source {
	return func(rnd *rand.Rand) func(round, client, clients int) source {
		l := list(rnd)
		return func(_, client, clients int) source { return l.cursor(client, clients) }
	}
}
