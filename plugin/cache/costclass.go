package cache

// cost is what it takes to get an answer again that was let go.
type cost uint8

const (
	costRemote cost = iota // somebody else has to be asked, or it is not known
	costLocal              // the plugins below have it at hand
	costs
)

// localShare is the part of a shard that local entries have for sure; beyond it they give way before remote ones.
const localShare = 4

// costClass is the entries of a shard that cost the same. Among these, what goes is chosen by S3-FIFO (Yang et al., SOSP 2023): new entries go
// through a small queue, and only those that were asked for again get into the main one, so a scan of names that are asked once does not
// push out the popular ones. See eviction_test.go for how it fares.
type costClass struct {
	small queue  // entries that were not asked for again so far
	main  queue  // those that were
	ghost ghosts // entries that left the small queue
	live  int    // entries
}

// queue is the main queue, or the small one.
func (l *costClass) queue(main bool) *queue {
	if main {
		return &l.main
	}
	return &l.small
}

// enqueue puts e at the end of the main queue of its class, or of the small one.
func (sh *shard) enqueue(e *entry, inMain bool) {
	e.inMain = inMain
	l := &sh.classes[e.cost]
	q := l.queue(inMain)
	q.push(e.hash)
	if most := 2*l.live + 16; q.n > most { // most of them went, if not by their turn
		queued := make(map[uint64]bool, l.live)
		q.tidy(func(hash uint64) bool {
			e := sh.queued(hash, e.cost, inMain)
			if e == nil || queued[hash] {
				return false
			}
			queued[hash] = true
			return true
		})
	}
}

// queued is the entry of a hash that stood in the main queue of a class, or in the small one, nil if it went.
func (sh *shard) queued(hash uint64, c cost, inMain bool) *entry {
	if e := sh.table.Load().findHash(hash); e != nil && e.cost == c && e.inMain == inMain {
		return e
	}
	return nil
}

// evict chooses an entry other than keep, takes it out, and returns it; nil if there is none.
func (sh *shard) evict(keep *entry) *entry {
	first, second := costRemote, costLocal
	if sh.classes[costLocal].live*localShare > sh.live {
		first, second = costLocal, costRemote
	}
	if e := sh.evictFrom(first, keep); e != nil {
		return e
	}
	return sh.evictFrom(second, keep)
}

func (sh *shard) evictFrom(c cost, keep *entry) *entry {
	l := &sh.classes[c]
	if l.live == 0 || l.live == 1 && keep.cost == c && sh.table.Load().findHash(keep.hash) == keep {
		return nil
	}
	for {
		if n := l.small.n; n > 0 && (n*10 > l.live || l.main.n == 0) {
			hash, _ := l.small.pop()
			sh.readAhead(&l.small)
			e := sh.queued(hash, c, false)
			switch {
			case e == nil:
			case e == keep || e.used.Load() > 0:
				e.used.Store(0)
				sh.enqueue(e, true)
			default:
				l.ghost.add(hash, 2*l.live) // fewer serve a flood worse, more a usual day
				sh.drop(e)
				return e
			}
			continue
		}
		hash, _ := l.main.pop()
		sh.readAhead(&l.main)
		e := sh.queued(hash, c, true)
		if e == nil {
			continue
		}
		if n := e.used.Load(); n > 0 || e == keep { // each round takes one of its hits away, so this ends
			e.used.Store(max(n, 1) - 1)
			sh.enqueue(e, true)
			continue
		}
		sh.drop(e)
		return e
	}
}
