package recurse

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// jobKey is the question of a job.
type jobKey struct {
	name   string
	typ    uint16
	subnet string // see iterate.Run.Subnet
}

// job resolves one question, for any number of clients. Its Ending ends once, with a result that does not change.
//
// The Run is stepped by whoever ends an exchange, under the job's lock; exchanges begin without it. When the
// client's time is over the clients get what there is, and the Run goes on for as long again, to fill the stores.
type job struct {
	*resolver
	key    jobKey
	client bool // it is not the resolver's own
	beginner
	began  time.Time
	result *iterate.Result // set before the Ending ends
	got    iterate.Result  // most often what result is
	patience
	refresh bool // no client waits for it
	ahead   bool // nor has one asked

	mu   sync.Mutex
	run  *iterate.Run // nil when it is over
	told bool         // the Ending has ended
	gone bool         // it gave way: the result is a failure that nobody keeps
	// whose queries wait for it; see clients.go
	waiting []netip.Addr
	room    [1]netip.Addr // of waiting

	eventloop.Ending
}

// jobs are those under way, by question.
type jobs struct {
	mu        sync.Mutex
	all       map[jobKey]*job
	refreshes map[jobKey]bool // what is fetched again behind clients
}

// beginFor is the job for q's question, which q may wait for: one that is under way, or a new one, which is started.
// It is nil if a limit is reached, whose name is returned then. loop is the one that the caller is in, nil if in none; s
// is what a validator wants traced, nil if none does; found is what a look into the stores has come to just now.
func (r *resolver) beginFor(q *wire.Query, loop *eventloop.Loop, s *advice.Source, found finding) (j *job, limit string) {
	client, ok := r.clients.take(q)
	if !ok && r.makeRoomOf(client) {
		client, ok = r.clients.take(q)
	}
	if !ok {
		return nil, "client"
	}
	j, own := r.beginOf(q, s)
	if j == nil && r.makeRoom() {
		j, own = r.beginOf(q, s)
	}
	if j == nil {
		r.clients.give([]netip.Addr{client})
		return nil, "max_recursions"
	}
	j.join(client)
	if own {
		j.beginner = beginner{client, q.GivesWay()}
		switch found {
		case nothing:
			j.run.Looked()
		case old:
			j.run.Refresh()
			j.refresh = true
		}
		j.start(loop)
	}
	return j, ""
}

// begin is the job for q's question; own says that it is new, and to be started. It is nil if there are too many.
func (r *resolver) begin(q *wire.Query) (j *job, own bool) {
	k := r.keyOf(q)
	r.jobs.mu.Lock()
	defer r.jobs.mu.Unlock()
	if j := r.jobs.all[k]; j != nil {
		return j, false
	}
	if len(r.jobs.all) >= r.maxRecursions {
		return nil, false
	}
	j = r.newJob(k, false)
	j.client = true
	r.jobs.all[k] = j
	return j, true
}

// asks reports whether j is for q's question.
func (j *job) asks(q *wire.Query) bool {
	return j.key.typ == q.Type() && j.key.name == string(q.Lower()) && j.key.subnet == j.subnetOf(q)
}

func (r *resolver) newJob(k jobKey, refresh bool) *job {
	j := &job{
		resolver: r, key: k, began: time.Now(), refresh: refresh,
		run: iterate.New(&r.conf, iterate.Question{Name: k.name, Type: k.typ}, refresh),
	}
	j.run.Subnet(k.subnet)
	j.waiting = j.room[:0]
	return j
}

// start takes the first step. loop is the one that the caller is in, nil if in none.
func (j *job) start(loop *eventloop.Loop) {
	j.event(iterate.Event{Kind: iterate.Begun}, loop)
	j.mu.Lock()
	if j.run != nil {
		j.deadlines.add(j, j.began.Add(j.timeout))
	}
	j.mu.Unlock()
}

// event takes a step, and does what the Run wants done.
func (j *job) event(ev iterate.Event, loop *eventloop.Loop) {
	var room [4]iterate.Action
	j.mu.Lock()
	if j.run == nil {
		j.mu.Unlock()
		return
	}
	actions := append(room[:0], j.run.Step(ev, j.now())...)
	over := false
	for _, a := range actions {
		if a.Kind == iterate.Finish {
			over = true
			j.end(j.run.Result())
		}
	}
	var waited []netip.Addr
	tell := over && !j.told
	if tell {
		waited = j.tell()
	}
	j.mu.Unlock()
	j.clients.give(waited)
	for _, a := range actions {
		if a.Kind == iterate.Send && !over {
			j.resolver.send(j, a, loop)
		}
	}
	if tell {
		j.EndIn(loop)
	}
}

// end notes the result, and forgets the job. mu is held.
func (j *job) end(res *iterate.Result) {
	if !j.told {
		j.got = *res
		j.result = &j.got
	}
	j.deadlines.remove(j)
	j.resolver.forget(j)
	j.counts.resolved(j, res)
	j.run.Free()
	j.run = nil
}

// again fetches what a client got again, behind it: the end of its TTL is near.
func (r *resolver) again(k jobKey) { r.behind(k, false) }

// ahead fetches what a validator above is going to ask for, if there is one.
func (r *resolver) ahead(q iterate.Question) {
	if r.prefetch && r.examiner.get() != nil {
		r.behind(jobKey{name: q.Name, typ: q.Type}, true)
	}
}

// behind starts a job that no client waits for, if there are not too many, or one for the same, already. ahead says that
// nobody has asked yet.
func (r *resolver) behind(k jobKey, ahead bool) {
	r.jobs.mu.Lock()
	defer r.jobs.mu.Unlock()
	if r.jobs.refreshes[k] || len(r.jobs.refreshes) >= max(r.maxRecursions/refreshShare, 1) {
		return
	}
	r.jobs.refreshes[k] = true
	j := r.newJob(k, true)
	if j.ahead = ahead; ahead {
		j.run.Ahead()
	}
	go j.start(nil)
}

// refreshShare is which part of the recursions those behind clients may be.
const refreshShare = 4

func (r *resolver) forget(j *job) {
	r.jobs.mu.Lock()
	if r.jobs.all[j.key] == j {
		delete(r.jobs.all, j.key)
	}
	if j.refresh {
		delete(r.jobs.refreshes, j.key)
	}
	r.jobs.mu.Unlock()
}

// late tells the clients that their time is over. The second time it ends the Run.
func (j *job) late() {
	j.mu.Lock()
	switch {
	case j.run == nil:
		j.mu.Unlock()
	case j.told:
		j.run.Abandon()
		j.run = nil
		j.mu.Unlock()
		j.resolver.forget(j)
	default:
		j.result = j.run.Late(j.now())
		waited := j.tell()
		j.deadlines.add(j, time.Now().Add(j.timeout))
		j.mu.Unlock()
		j.clients.give(waited)
		j.resolver.forget(j)
		j.counts.limit("timeout")
		j.End()
	}
}

// wait waits for the result, unless ctx ends.
func (j *job) wait(ctx context.Context) error {
	if j.Over() {
		return nil
	}
	w := make(eventloop.Waiter)
	j.Then(w)
	select {
	case <-w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
