package recurse

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// A root whose servers are others than the hints' is either one that has changed, or a forger's. It is told of, and
// where there is a validator it has to be signed.

// examiners is the validators above, in the order in which they came: the last one examines, as it is that of the
// configuration that serves, or is about to. If that fails to start, the one before does again.
type examiners struct {
	mu  sync.Mutex
	all []advice.Examiner
	now atomic.Pointer[advice.Examiner]
}

func (e *examiners) get() advice.Examiner {
	if p := e.now.Load(); p != nil {
		return *p
	}
	return nil
}

// examineBy has signatures of the root's servers, and of the copy of the root zone, checked by a block's validator e, nil if
// it has none, until leave is true. While none of the blocks that share r has one, nothing checks the servers, and the copy's
// digest has to do.
func (r *resolver) examineBy(e advice.Examiner, leave bool) {
	if e == nil {
		return
	}
	x := &r.examiner
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = slices.DeleteFunc(x.all, func(o advice.Examiner) bool { return o == e })
	if !leave {
		x.all = append(x.all, e)
	}
	var last *advice.Examiner
	if n := len(x.all); n > 0 {
		e := x.all[n-1]
		last = &e
	}
	x.now.Store(last)
	if r.root != nil {
		r.root.SetExaminer(x.get())
	}
}

// strange implements iterate.Shared.Strange.
func (r *resolver) strange(why string, set *rrset.Set, use func()) (vet func()) {
	logger.Warningf("The root is not that of the hints: %s", why)
	e := r.examiner.get()
	if e == nil {
		return nil
	}
	return func() { go r.vet(e, set, use) }
}

// vet has the root's servers used if their names are signed.
func (r *resolver) vet(e advice.Examiner, set *rrset.Set, use func()) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*r.timeout)
	defer cancel()
	if err := r.examine(ctx, e, set); err != nil {
		logger.Warningf("The servers of the root are not used: %v", err)
		return
	}
	use()
}

// examine tells why an NS RRset of the root is not secure, nil if it is.
func (r *resolver) examine(ctx context.Context, e advice.Examiner, set *rrset.Set) error {
	j := r.newJob(jobKey{rrset.Root, rrset.TypeDNSKEY, ""}, true)
	j.start(nil)
	if err := j.wait(ctx); err != nil {
		return fmt.Errorf("keys of the root: %w", err)
	}
	answer := func(s *rrset.Set) *rrset.Message {
		m := &rrset.Message{Flags: wire.FlagAA, EDNS: true, Name: s.Name, Type: s.Type}
		m.Section[rrset.Answer] = []*rrset.Set{s}
		return m
	}
	reply := func(name string, typ uint16) *rrset.Message {
		switch {
		case name != rrset.Root:
		case typ == set.Type:
			return answer(set)
		case typ == rrset.TypeDNSKEY:
			for _, s := range j.result.Answer {
				if s.Type == typ {
					return answer(s)
				}
			}
		}
		return nil
	}
	return e.Examine(reply, func(yield func(string, uint16) bool) { yield(rrset.Root, set.Type) })
}
