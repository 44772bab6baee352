package recurse

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file makes room where as many queries wait as may: the job that has waited longest gives way, after 200 ms, as
// package proxy has it. Else a few names of many zones whose servers are silent or slow kept all places.

// beginner is whose query a job was begun for. It does not change once that has started.
type beginner struct {
	from  netip.Addr
	place eventloop.Place // 0: it does not give way
}

// lookAgain is how long after no job had waited for long it is looked again.
const lookAgain = 10 * time.Millisecond

// looked is when that was, by whose jobs were looked at: those of all, and those of a client. Some clients share a time.
type looked struct {
	all atomic.Int64
	of  [64]atomic.Int64
}

// makeRoom has a job give way, and reports whether there was one.
func (r *resolver) makeRoom() bool {
	return r.makeRoomIn(&r.looked.all, func(*job) bool { return true })
}

// makeRoomOf is makeRoom among the jobs of a client.
func (r *resolver) makeRoomOf(client netip.Addr) bool {
	at := maphash.Comparable(r.flights.seed, client) % uint64(len(r.looked.of))
	return r.makeRoomIn(&r.looked.of[at], func(j *job) bool { return j.from == client })
}

func (r *resolver) makeRoomIn(looked *atomic.Int64, fits func(*job) bool) bool {
	now := time.Now().UnixNano()
	if passed := now - looked.Load(); passed >= 0 && passed < int64(lookAgain) { // the clock may have been set back
		return false
	}
	made := proxy.GiveWay(eventloop.Parked|eventloop.AtWork, func(x *proxy.Exchange) bool {
		f, ok := x.Owner.(*flight)
		return ok && f.resolver == r && fits(f.first[0].job)
	})
	if !made {
		looked.Store(now)
	}
	return made
}

// Waits implements proxy.Waiter: whether the clients of the job that f was begun for have no answer yet.
func (f *flight) Waits() bool { return !f.first[0].job.Over() }

// waitsLong reports whether j has waited for so long that it may give way.
func (j *job) waitsLong() bool { return time.Since(j.began) >= eventloop.LeastPatience }

// giveWay ends j without an answer for its clients. It reports false if j does not give way, or they have had theirs.
func (j *job) giveWay() bool {
	j.mu.Lock()
	if j.place == 0 || j.run == nil || j.told {
		j.mu.Unlock()
		return false
	}
	j.run.Abandon()
	j.run, j.gone = nil, true
	j.result = &iterate.Result{Rcode: wire.ServFail, Code: dns.ExtendedErrorCodeOther, Text: tooMany, Told: true}
	waited := j.tell()
	j.mu.Unlock()
	j.deadlines.remove(j)
	j.clients.give(waited)
	j.resolver.forget(j)
	j.End()
	return true
}

// gaveWay is how it is counted that a job gave way: for a client's limit, for that of all, or for that of what waits.
const gaveWay = "gave_way"

// tooMany is what clients are told of a limit.
const tooMany = "too many recursions"
