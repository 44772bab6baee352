package secondary

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
)

// roster is the zones that there are: those of the Corefile, and the members of catalogs.
type roster struct {
	rooms    *rooms
	transfer *transfer.Transfer     // told of changes; set before start
	block    []string               // the keys of the server block, nil if they are not known
	statics  map[string]bool        // the zones of the Corefile; set before start
	alone    func(name string) bool // see replica.alone; set before start

	takesOver bool // the process is in the place of another one; set at start

	mu       sync.RWMutex
	replicas map[string]*replica // by name
	catalogs []*consumer
	members  map[string]*member // of replicas, by name
	started  bool

	index atomic.Pointer[file.Index]

	dropped log.Few // lines about notifications from strangers

	ctx    context.Context // of all replicas
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newRoster() *roster {
	r := &roster{rooms: newRooms(), statics: map[string]bool{}, replicas: map[string]*replica{}, members: map[string]*member{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.publish()
	return r
}

// find is the zone that a query is for.
func (r *roster) find(q *wire.Query) (*file.Zone, bool) { return r.index.Load().Find(q) }

// replica is that of exactly a name, nil if there is none.
func (r *roster) replica(name string) *replica {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.replicas[name]
}

// publish lets queries see the replicas that there are now. The roster is locked, or nobody else has it yet.
func (r *roster) publish() {
	zones := make(map[string]*file.Zone, len(r.replicas))
	for name, z := range r.replicas {
		zones[name] = z.zone
	}
	r.index.Store(file.NewIndex(zones))
}

// add adds a replica. The roster is locked, or not started.
func (r *roster) add(z *replica) {
	r.replicas[z.name()], z.alone = z, r.alone
	if r.started {
		r.begin(z)
	}
}

// begin begins with a replica.
func (r *roster) begin(z *replica) {
	ctx, cancel := context.WithCancel(r.ctx)
	announced := z.zone.Announce(r.transfer)
	z.ended = func() {
		cancel()
		announced()
	}
	z.inherit()
	r.done.Go(func() { z.run(ctx, r.takesOver) })
}

// remove ends with a replica, which does not wait for what it is doing. The roster is locked.
func (r *roster) remove(name string) {
	z := r.replicas[name]
	delete(r.replicas, name)
	if z == nil {
		return
	}
	z.gone.Store(true)
	if z.ended != nil {
		z.ended()
		r.transfer.Changed(name, z.zone.Current(), nil)
	}
}

// start begins with all replicas. What was served before the reload, or is stored, is there when it returns: the server,
// which may take the place of another one, begins to listen then.
func (r *roster) start(t *transfer.Transfer) {
	r.takesOver = caddy.IsUpgrade()
	r.tidy()
	var catalogs []*replica
	for _, z := range r.replicas { // nobody else changes them yet
		if z.took != nil {
			catalogs = append(catalogs, z)
		}
	}
	for _, z := range catalogs { // first of all, and with the roster free: their members come with them
		z.recall()
	}
	var wg sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, z := range r.replicas {
		wg.Go(func() {
			room <- struct{}{}
			z.recall()
			<-room
		})
	}
	wg.Wait()
	r.beginAll(t)
}

// tidy removes what an earlier process left unfinished where zones are stored.
func (r *roster) tidy() {
	dirs := map[string]bool{}
	for _, z := range r.replicas {
		if dir := z.source.storage; dir != "" {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		zonefile.Tidy(dir, unfinished, time.Now())
	}
}

func (r *roster) beginAll(t *transfer.Transfer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.transfer, r.started = t, true
	r.done.Go(func() { r.rooms.watch(r.ctx) })
	for _, z := range r.replicas {
		r.begin(z)
	}
}

// stop ends all of them, and waits for that.
func (r *roster) stop() {
	r.cancel()
	r.mu.Lock()
	r.started = false
	r.mu.Unlock()
	r.done.Wait()
}
