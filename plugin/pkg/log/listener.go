package log

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Listener is told every line that plugins log, before it is written. The kubernetes plugin's events and
// programs that embed the server are such listeners.
//
// plugin is the prefix of the line, "plugin/NAME: ". The other arguments are those of the call; the slice
// belongs to the listener. The methods run on the goroutine that logs, several at a time, and must not wait.
// A listener that logs through this package must see to it that it does not call itself for ever.
type Listener interface {
	// Name identifies the listener: of listeners with one name only the last registered one is told.
	Name() string
	Debug(plugin string, v ...any)
	Debugf(plugin string, format string, v ...any)
	Info(plugin string, v ...any)
	Infof(plugin string, format string, v ...any)
	Warning(plugin string, v ...any)
	Warningf(plugin string, format string, v ...any)
	Error(plugin string, v ...any)
	Errorf(plugin string, format string, v ...any)
	Fatal(plugin string, v ...any)
	Fatalf(plugin string, format string, v ...any)
}

var (
	// registering serialises the writers of listeners.
	registering sync.Mutex
	// listeners is replaced whole, never changed. Nil means none.
	listeners atomic.Pointer[[]named]
)

// named is a listener with the name it had when it was registered.
type named struct {
	name     string
	listener Listener
}

var errNoListener = errors.New("log: listener is nil")

// RegisterListener adds new, in the place of the listener of the same name if there is one. The only error
// is that new is nil.
func RegisterListener(new Listener) error {
	if new == nil {
		return errNoListener
	}
	add := named{new.Name(), new}

	registering.Lock()
	defer registering.Unlock()
	next := current()
	if i := slices.IndexFunc(next, func(n named) bool { return n.name == add.name }); i >= 0 {
		next = slices.Clone(next)
		next[i] = add
	} else {
		next = append(slices.Clip(next), add)
	}
	listeners.Store(&next)
	return nil
}

// DeregisterListener removes the listener that has old's name; that there is none is no error. The only
// error is that old is nil. A line that is being logged meanwhile may still reach the listener.
func DeregisterListener(old Listener) error {
	if old == nil {
		return errNoListener
	}
	name := old.Name()

	registering.Lock()
	defer registering.Unlock()
	next := slices.DeleteFunc(slices.Clone(current()), func(n named) bool { return n.name == name })
	listeners.Store(&next)
	return nil
}

// current returns the registered listeners, to be read only.
func current() []named {
	if l := listeners.Load(); l != nil {
		return *l
	}
	return nil
}

// tell calls the method of every listener. v is copied so that it need not leave the caller's stack when
// there is nobody to tell.
func tell(prefix string, v []any, method func(Listener, string, ...any)) {
	for _, n := range current() {
		method(n.listener, prefix, slices.Clone(v)...)
	}
}

// tellf is tell for the methods with a format.
func tellf(prefix, format string, v []any, method func(Listener, string, string, ...any)) {
	for _, n := range current() {
		method(n.listener, prefix, format, slices.Clone(v)...)
	}
}
