package dnsserver

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/caddy"
)

// OnEnd has end called once when the configuration of c is over, however that comes about: another one takes its place,
// the process ends, another plugin cannot be set up or cannot start, or it was only looked at, as Validate does. It is
// for what a setup function, or a startup function, makes: Caddy calls OnShutdown only for configurations that have
// started.
//
// Ends are called after all OnShutdown, the last one first. What has started may use what was set up before.
func OnEnd(c *caddy.Controller, end func() error) { c.Context().(*dnsContext).OnEnd(end) }

// OnEnd is what the function OnEnd calls; package endpoint does, too.
func (d *dnsContext) OnEnd(end func() error) { d.ends.add(end) }

// OnEnding has begin called once when the configuration of c begins to end, however that comes about: before all
// OnShutdown and OnEnd, or while others are set up yet, see GiveUp. It must not wait. What takes time begins so for all
// at one time, and OnShutdown waits for it.
func OnEnding(c *caddy.Controller, begin func()) { c.Context().(*dnsContext).ends.addBegin(begin) }

// givenUp says that the process is to end.
var givenUp atomic.Bool

// GiveUp has configurations begin to end that are on their way to take the place of others: the process is to end, and
// what their plugins wait for, such as an API that does not answer, may take long.
func GiveUp() {
	givenUp.Store(true)
	var all []*dnsContext
	restarting.Lock()
	for _, r := range restarting.all {
		if r.made != nil {
			all = append(all, r.made)
		}
	}
	restarting.Unlock()
	for _, d := range all {
		d.ends.begin()
	}
}

// endTime is how long the plugins of a configuration have to end, all together. Only tests change it.
var endTime = 10 * time.Second

// leastEnd is what each of them has, also if others have taken all of that.
const leastEnd = 100 * time.Millisecond

// endBy is the error of end, also if it panics. One that has not returned by then is left alone: what it waits for,
// such as a disk, may never answer.
func endBy(deadline time.Time, end func() error) error {
	over := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				over <- fmt.Errorf("panic: %v", r)
			}
		}()
		over <- end()
	}()
	select {
	case err := <-over:
		return err
	case <-time.After(max(leastEnd, time.Until(deadline))):
		who := runtime.FuncForPC(reflect.ValueOf(end).Pointer()).Name()
		return fmt.Errorf("%s has not come to its end within %s, and is left alone: maybe a disk does not answer", path.Base(who), endTime)
	}
}

// ends is what a configuration has to end.
type ends struct {
	mu     sync.Mutex
	begins []func()
	all    []func() error
}

func (e *ends) addBegin(begin func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begins = append(e.begins, begin)
}

// begin calls what OnEnding was given, once.
func (e *ends) begin() {
	e.mu.Lock()
	begins := e.begins
	e.begins = nil
	e.mu.Unlock()
	for _, begin := range begins {
		begin()
	}
}

func (e *ends) add(end func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, end)
}

// run calls all that were added, once. One that panics, or has not returned by the deadline, holds up no other.
func (e *ends) run(deadline time.Time) (err error) {
	e.begin()
	e.mu.Lock()
	all := e.all
	e.all = nil
	e.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		err = errors.Join(err, endBy(deadline, all[i]))
	}
	return err
}
