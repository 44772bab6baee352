package validator

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// ntas are the negative trust anchors that hold (RFC 7646), with their ends. Any number of goroutines may use them.
type ntas struct {
	path string // of the file that those added at run time are kept in; may be empty

	mu  sync.Mutex // writers of all
	all atomic.Pointer[map[string]time.Time]
	own map[string]bool // those that belong into the file; guarded by mu
}

func (n *ntas) get() map[string]time.Time {
	if m := n.all.Load(); m != nil {
		return *m
	}
	return nil
}

// holds reports whether one holds for just this name.
func (n *ntas) holds(name string, now time.Time) bool {
	m := n.get()
	if len(m) == 0 {
		return false
	}
	until, ok := m[name]
	return ok && now.Before(until)
}

// set adds one, or with a zero time takes one away. With keep it belongs into the file.
func (n *ntas) set(name string, until time.Time, keep bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := maps.Clone(n.get())
	if m == nil {
		m = map[string]time.Time{}
	}
	if n.own == nil {
		n.own = map[string]bool{}
	}
	changed := keep || n.own[name]
	if until.IsZero() {
		delete(m, name)
		delete(n.own, name)
	} else {
		m[name] = until
		n.own[name] = n.own[name] || keep
	}
	n.all.Store(&m)
	if n.path == "" || !changed {
		return nil
	}
	return n.write(m)
}

// write writes the file: a name and its end a line, in seconds since 1970. mu is held.
func (n *ntas) write(m map[string]time.Time) error {
	var b strings.Builder
	for name, until := range m {
		if n.own[name] {
			fmt.Fprintf(&b, "%s %d\n", rrset.Text(name), until.Unix())
		}
	}
	return autotrust.WriteFile(n.path, []byte(b.String()))
}

// load reads the file; one that does not exist is empty. What has ended is left out.
func (n *ntas) load(now time.Time) error {
	if n.path == "" {
		return nil
	}
	b, err := os.ReadFile(n.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	m := maps.Clone(n.get())
	if m == nil {
		m = map[string]time.Time{}
	}
	own := map[string]bool{}
	for i, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			return fmt.Errorf("%s:%d: %q is not a name and the time of its end", n.path, i+1, line)
		}
		name, err := rrset.Name(f[0])
		if err != nil {
			return fmt.Errorf("%s:%d: invalid name %q", n.path, i+1, f[0])
		}
		end, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("%s:%d: invalid time %q: seconds since 1970", n.path, i+1, f[1])
		}
		if until := time.Unix(end, 0); now.Before(until) {
			m[name], own[name] = until.Local(), true
			if most := now.Add(longestNTA); until.After(most) {
				m[name] = most
			}
		}
	}
	n.mu.Lock()
	n.own = own
	n.all.Store(&m)
	n.mu.Unlock()
	return nil
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
