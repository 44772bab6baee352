package validator

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/stamp"
)

// ntas are the negative trust anchors that hold (RFC 7646), with their ends. Any number of goroutines may use them.
type ntas struct {
	path   string               // of the file that those added at run time are kept in; may be empty
	turned func(names []string) // is told of those that hold from now on, and no more; nil until the server begins

	mu    sync.Mutex // writers of all
	all   atomic.Pointer[map[string]time.Time]
	own   map[string]bool // those that belong into the file; guarded by mu
	fresh []string        // what turned has not been told of; guarded by mu

	looks map[string]time.Time // when it is looked whether a name validates again; guarded by mu

	seen    *stamp.Stamp   // of the file, when it was read or written last; guarded by mu
	settles stamp.Settling // guarded by mu
	wrong   error          // what is wrong in the file as it was seen; guarded by mu
}

func (n *ntas) get() map[string]time.Time {
	if m := n.all.Load(); m != nil {
		return *m
	}
	return nil
}

// none reports whether there is none at all.
func (n *ntas) none() bool { return len(n.get()) == 0 }

// holds reports whether one holds for just this name.
func (n *ntas) holds(name string, now time.Time) bool {
	m := n.get()
	if len(m) == 0 {
		return false
	}
	until, ok := m[name]
	return ok && now.Before(until)
}

// publish has m hold from now on. mu is held; who has it calls tell when it is free.
func (n *ntas) publish(m map[string]time.Time) {
	before, now := n.get(), clock.Now()
	n.all.Store(&m)
	for name := range before {
		if _, holds := m[name]; !holds {
			n.fresh = append(n.fresh, name)
			delete(n.looks, name)
		}
	}
	for name := range m {
		if until, held := before[name]; !held || !now.Before(until) {
			n.fresh = append(n.fresh, name)
			n.lookAt(name, now.Add(mended))
		}
	}
}

// lookAt notes when it is looked next whether a name validates again. mu is held.
func (n *ntas) lookAt(name string, at time.Time) {
	if n.looks == nil {
		n.looks = map[string]time.Time{}
	}
	n.looks[name] = at
}

// due are the names of which it is to be looked now whether they validate again. A clock that was set back does not put
// that off by much; now may be a little older than what has just begun.
func (n *ntas) due(now time.Time) (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, at := range n.looks {
		if !now.Before(at) || at.Sub(now) > 2*mended {
			names = append(names, name)
			n.lookAt(name, now.Add(mended))
		}
	}
	return names
}

// tell tells turned what has changed. mu is free: whoever asks meanwhile finds those that hold now.
func (n *ntas) tell() {
	n.mu.Lock()
	names := n.fresh
	n.fresh = nil
	n.mu.Unlock()
	if len(names) > 0 && n.turned != nil {
		n.turned(names)
	}
}

// set adds one, or with a zero time takes one away. With keep it belongs into the file. One whose time is over is taken away
// though the file cannot be written: there it is over, too. A file that may still be written is waited for, as it is
// replaced.
func (n *ntas) set(name string, until time.Time, keep bool) error {
	settle(n)
	until = until.Round(0) // as the file has it: other clocks stand still while the machine is asleep
	defer n.tell()
	n.mu.Lock()
	defer n.mu.Unlock()
	changed, now, unread := keep || n.own[name], clock.Now(), error(nil)
	if changed { // what somebody has written there meanwhile is not to be lost
		_, unread = n.read(now)
		if err := cmp.Or(unread, n.wrong); err != nil {
			if !until.IsZero() || n.holds(name, now) {
				return err
			}
			changed = false
		}
	}
	m := maps.Clone(n.get())
	if m == nil {
		m = map[string]time.Time{}
	}
	if n.own == nil {
		n.own = map[string]bool{}
	}
	if until.IsZero() {
		delete(m, name)
		delete(n.own, name)
	} else {
		m[name] = until
		had := n.own[name]
		n.own[name] = had || keep
		if changed {
			if err := n.write(m); err != nil { // who adds one that is not stored is told that there is none
				n.own[name] = had
				return err
			}
		}
	}
	n.publish(m)
	if until.IsZero() && changed {
		return n.write(m)
	}
	return unread
}

// write writes the file, if there is one: a name and its end a line, in seconds since 1970. mu is held.
func (n *ntas) write(m map[string]time.Time) error {
	if n.path == "" {
		return nil
	}
	var b strings.Builder
	for name, until := range m {
		if n.own[name] {
			fmt.Fprintf(&b, "%s %d\n", rrset.Text(name), until.Unix())
		}
	}
	err := autotrust.WriteFile(n.path, []byte(b.String()))
	seen := stamp.At(n.path)
	n.seen = &seen
	if err == nil {
		wrote.Store(n.path, seen)
	}
	return err
}

// wrote is what files are like, by their paths, that this process has written: all of it is in them. Several server
// blocks may have one.
var wrote sync.Map

// settle waits until the file is not being written any more. It is a variable for tests.
var settle = func(n *ntas) { time.Sleep(n.unsettled(clock.Now())) }

// unsettled is how long to wait until the file is read anew, 0 if it may be read now: one that was changed just now may
// still be written, and its first lines are a file, too.
func (n *ntas) unsettled(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.path == "" || n.seen == nil {
		return 0
	}
	is := stamp.At(n.path)
	if ours, _ := wrote.Load(n.path); is == *n.seen || is == (stamp.Stamp{}) || is == ours {
		return 0
	}
	return n.settles.Wait(is.Changed(), now, looks)
}

// load reads the file, unless it is as it was when it was read or written last; one that does not exist is empty.
// What has ended is left out, and what was in the file and is no more is taken away. changed says that the file was
// read. After an error all is as before.
func (n *ntas) load(now time.Time) (changed bool, err error) {
	defer n.tell()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.read(now)
}

// read is load; mu is held.
func (n *ntas) read(now time.Time) (changed bool, err error) {
	if n.path == "" {
		return false, nil
	}
	seen := stamp.At(n.path)
	if n.seen != nil && *n.seen == seen {
		return false, nil
	}
	before := n.seen
	n.seen = &seen
	if before != nil {
		if err := stamp.NoPipe(n.path); err != nil {
			n.wrong = err
			return false, err
		}
	}
	b, err := os.ReadFile(n.path)
	if err != nil && !os.IsNotExist(err) {
		n.seen = before // it may pass; nobody writes over what was not read
		return false, err
	}
	told, err := n.parse(string(b), now)
	n.wrong = err
	if err != nil {
		return false, err
	}
	m := maps.Clone(n.get())
	if m == nil {
		m = map[string]time.Time{}
	}
	for name, own := range n.own {
		if own {
			delete(m, name)
		}
	}
	n.own = map[string]bool{}
	for name, until := range told {
		m[name], n.own[name] = until, true
	}
	n.publish(m)
	return true, nil
}

// parse reads the file's text.
func (n *ntas) parse(text string, now time.Time) (map[string]time.Time, error) {
	told := map[string]time.Time{}
	for i, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("%s:%d: %q is not a name and the time of its end", n.path, i+1, line)
		}
		name, err := rrset.Name(f[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: invalid name %q", n.path, i+1, f[0])
		}
		end, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: invalid time %q: seconds since 1970", n.path, i+1, f[1])
		}
		if until := time.Unix(end, 0); now.Before(until) {
			if most := now.Add(longestNTA); until.After(most) {
				until = most
			}
			told[name] = until
		}
	}
	return told, nil
}

// next is how long it takes until one ends, as caches go on with what was not validated until they are told. One that
// could not be taken away at its end waits for the next look.
func (n *ntas) next(now time.Time) time.Duration {
	d := longestNTA
	for _, until := range n.get() {
		if rest := until.Sub(now); rest > 0 {
			d = min(d, rest)
		}
	}
	return d
}

// ended takes those away that are over, and tells which.
func (n *ntas) ended(now time.Time) (names []string) {
	for name, until := range n.get() {
		if !now.Before(until) {
			names = append(names, name)
		}
	}
	return names
}
