package main

import (
	"math/rand/v2"
	"strconv"
)

// source yields the queries of one client, without end.
type source interface {
	// next returns a query with the id 0, good until the call after, and what it is
	// to be answered with.
	next() (msg []byte, want outcome)
}

// queryList is a list of packed queries. It is written while it is built and then
// read by any number of cursors.
type queryList struct {
	arena []byte
	ends  []uint32
	wants []outcome
}

func (l *queryList) add(name string, qtype uint16, want outcome) {
	l.arena = appendQuery(l.arena, name, qtype)
	l.ends = append(l.ends, uint32(len(l.arena)))
	l.wants = append(l.wants, want)
}

func (l *queryList) at(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.arena[start:l.ends[i]]
}

// cursor returns a source that begins at the share of client of clients and goes round.
func (l *queryList) cursor(client, clients int) source {
	return &cursor{list: l, at: client * len(l.ends) / clients}
}

type cursor struct {
	list *queryList
	at   int
}

func (c *cursor) next() ([]byte, outcome) {
	i := c.at
	if c.at++; c.at == len(c.list.ends) {
		c.at = 0
	}
	return c.list.at(i), c.list.wants[i]
}

// freshNames is a source whose names never come twice in one round.
type freshNames struct {
	prefix    string
	zones     []string // in turns
	secure    bool     // answers are to be validated
	n         int
	name, msg []byte
}

func newFreshNames(round, client int, zones ...string) *freshNames {
	return &freshNames{prefix: "r" + strconv.Itoa(round) + "c" + strconv.Itoa(client) + "x", zones: zones}
}

// newSecureNames asks whether answers are secure, by AD (RFC 6840 §5.7).
func newSecureNames(round, client int) *freshNames {
	f := newFreshNames(round, client, missOrigin)
	f.secure = true
	return f
}

// missZones is the first n zones of names that were never asked for.
func missZones(n int) (all []string) {
	for i := range n {
		all = append(all, missZone(i))
	}
	return all
}

// missZone is one of the zones that names are in which were never asked for.
func missZone(i int) string {
	if i == 0 {
		return missOrigin
	}
	return "z" + strconv.Itoa(i) + "." + missOrigin
}

func (f *freshNames) next() ([]byte, outcome) {
	f.name = append(f.name[:0], f.prefix...)
	f.name = strconv.AppendInt(f.name, int64(f.n), 10)
	f.name = append(append(f.name, '.'), f.zones[f.n%len(f.zones)]...)
	f.n++
	f.msg = appendQuery(f.msg[:0], string(f.name), typeA)
	if f.secure {
		f.msg[3] |= flagAD
		return f.msg, secure
	}
	return f.msg, answer
}

// flatQueries asks for the names of flatZone: 45 % A, 25 % AAAA (half of them NODATA),
// 8 % MX, 7 % TXT and 15 % names that do not exist.
func flatQueries(origin string, names, count int, rnd *rand.Rand) *queryList {
	l := new(queryList)
	for range count {
		i, share := rnd.IntN(names), rnd.Float64()
		switch {
		case share < 0.45:
			l.add(flatName(i)+"."+origin, typeA, answer)
		case share < 0.70:
			want := noData
			if hasAAAA(i) {
				want = answer
			}
			l.add(flatName(i)+"."+origin, typeAAAA, want)
		case share < 0.78:
			l.add(flatName(i/4*4+1)+"."+origin, typeMX, answer)
		case share < 0.85:
			l.add(flatName(i/4*4+3)+"."+origin, typeTXT, answer)
		default:
			l.add("nx"+strconv.Itoa(rnd.IntN(1e6))+"."+origin, typeA, nxDomain)
		}
	}
	return l
}

// warmQueries asks once for each of names forwarded names, in random order.
func warmQueries(origin string, names int, rnd *rand.Rand) *queryList {
	l := new(queryList)
	for _, i := range rnd.Perm(names) {
		l.add(flatName(i)+"."+origin, typeA, answer)
	}
	return l
}

// clusterQueries is what resolvers with ndots:5 send: for each host the whole search
// list, A and AAAA of each step. Popularity is skewed: a tenth of the services gets
// nearly half of the walks. Two walks of five are for hosts outside of the cluster.
func clusterQueries(services, walks int, rnd *rand.Rand) *queryList {
	l := new(queryList)
	for range walks {
		p := rnd.Float64()
		i := int(float64(services) * p * p * p)
		own := "." + namespace(rnd.IntN(clusterNamespaces)) + ".svc." + clusterOrigin
		inside := rnd.Float64() < 0.6
		host := "www.e" + strconv.Itoa(i%500) + "." + outsideOrigin
		if inside {
			host = serviceName(i) + "." + clusterOrigin
		}
		for _, suffix := range []string{own, ".svc." + clusterOrigin, "." + clusterOrigin, "." + searchOrigin} {
			l.add(host+suffix, typeA, nxDomain)
			l.add(host+suffix, typeAAAA, nxDomain)
		}
		l.add(host, typeA, answer)
		want := answer
		if inside {
			want = noData // services have IPv4 addresses only
		}
		l.add(host, typeAAAA, want)
	}
	return l
}
